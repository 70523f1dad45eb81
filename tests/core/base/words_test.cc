// How faults are put into words.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/base/diagnostic.h"
#include "core/base/json_reason.h"
#include "core/base/shared_library.h"

namespace piper {
namespace {

TEST(Diagnostic, EscapesControlCharactersThatItQuotes) {
  Diagnostic quoted = error("x.y", "got '\x1b[2J\x7f\xc2\x9b' and \xc3\xa9", {"a\rb.toml", 3, 1});
  quoted.note("also \x07");

  EXPECT_EQ(to_string(quoted),
            "a\\x0db.toml:3:1: error: got '\\x1b[2J\\x7f\\x9b' and \xc3\xa9 [x.y]\n"
            "note: also \\x07");
}

TEST(JsonReason, LeavesOutThePlaceAndTheParsersOwnCode) {
  const auto reason = [](const char* text) {
    try {
      return nlohmann::json::parse(text).dump();
    } catch (const nlohmann::json::parse_error& failure) {
      return json_reason(failure.what());
    }
  };

  EXPECT_EQ(reason("[1, ]"),
            "syntax error while parsing value - unexpected ']'; expected '[', '{', or a literal");
  EXPECT_EQ(reason("{\"a\": 1"),
            "syntax error while parsing object - unexpected end of input; expected '}'");
}

TEST(LoaderFailure, NamesTheUndefinedSymbolAsCppWritesIt) {
  const SharedLibrary::Failure cpp =
      loader_failure("/a/b.so: undefined symbol: _ZN5piper7dropoutERKN2at6TensorEdm");
  EXPECT_EQ(cpp.why,
            "/a/b.so: undefined symbol: piper::dropout(at::Tensor const&, double, "
            "unsigned long)");
  EXPECT_EQ(cpp.symbol, "piper::dropout(at::Tensor const&, double, unsigned long)");

  const SharedLibrary::Failure versioned =
      loader_failure("/a/b.so: undefined symbol: SSL_new, version OPENSSL_3.0.0");
  EXPECT_EQ(versioned.symbol, "SSL_new");
  EXPECT_EQ(versioned.why, "/a/b.so: undefined symbol: SSL_new, version OPENSSL_3.0.0");

  EXPECT_EQ(loader_failure("/a/b.so: invalid ELF header").symbol, "");
}

TEST(SharedLibrary, OfAFileThatIsNoneFailsWithTheLoadersWords) {
  const auto library = SharedLibrary::open("nowhere.so");  // of this folder, not of the system

  ASSERT_FALSE(library);
  EXPECT_TRUE(library.error().why.starts_with("./nowhere.so: cannot open shared object file"))
      << library.error().why;
}

}  // namespace
}  // namespace piper

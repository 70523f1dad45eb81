// docs/configuration.md holds the table that the schema prints. PIPER_UPDATE_GOLDEN=1 writes it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "core/config/schema.h"

namespace piper {
namespace {

constexpr const char* kFile = PIPER_SOURCE_DIR "/docs/configuration.md";
constexpr const char* kBegin = "<!-- keys: written from core/config/schema.cc -->\n";
constexpr const char* kEnd = "<!-- end of keys -->\n";

TEST(Reference, InTheDocumentationIsTheSchemas) {
  std::stringstream content;
  content << std::ifstream(kFile).rdbuf();
  std::string text = content.str();
  const std::size_t begin = text.find(kBegin);
  const std::size_t end = text.find(kEnd);
  ASSERT_NE(begin, std::string::npos);
  ASSERT_NE(end, std::string::npos);
  const std::size_t first = begin + std::string(kBegin).size();
  const std::string written = text.substr(first, end - first);

  const std::string expected = '\n' + reference() + '\n';

  if (written != expected && std::getenv("PIPER_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(kFile) << text.replace(first, end - first, expected);
    GTEST_SKIP() << "written anew";
  }
  EXPECT_EQ(written, expected) << "run this test with PIPER_UPDATE_GOLDEN=1";
}

TEST(Reference, NamesEveryKey) {
  const std::string text = reference();
  for (const Key& key : schema()) {
    EXPECT_NE(text.find("### `[" + key.section + "]`"), std::string::npos) << key.path();
    EXPECT_NE(text.find("| `" + key.name + "` |"), std::string::npos) << key.path();
  }
}

}  // namespace
}  // namespace piper

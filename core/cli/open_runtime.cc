#include "core/cli/open_runtime.h"

#include <boost/dll/runtime_symbol_info.hpp>
#include <cstdlib>
#include <filesystem>

#include "core/base/shared_library.h"

namespace piper {
namespace {

Runtime* opened = nullptr;

}  // namespace

bool is_runtime_open() {
  return opened != nullptr;
}

std::string runtime_file() {
  if (const char* given = ::secure_getenv("PIPER_RUNTIME"); given != nullptr && *given != '\0') {
    return std::filesystem::absolute(given).lexically_normal();
  }
  const std::filesystem::path program =
      std::filesystem::canonical(boost::dll::program_location().string());
  return program.parent_path().parent_path() / "lib" / "libpiper_runtime.so";
}

Expected<Runtime*> open_runtime() {
  if (opened != nullptr) {
    return opened;
  }
  const std::string file = runtime_file();
  if (!std::filesystem::exists(file)) {
    return fail(error("runtime.missing",
                      "expected the runtime, got no such file; this build of Piper plans from "
                      "captured graphs alone ([model] graph)",
                      {file}));
  }
  // Never closed: LibTorch cannot be unloaded.
  const auto library = SharedLibrary::open(file);
  if (!library) {
    return fail(
        error("runtime.load", "the runtime cannot be loaded: " + library.error().why, {file}));
  }
  const auto runtime = library->find<Runtime*()>("piper_runtime");
  if (runtime == nullptr) {
    return fail(error("runtime.load", "expected the runtime, got a library that is none", {file}));
  }
  opened = runtime();
  return opened;
}

}  // namespace piper

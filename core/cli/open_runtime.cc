#include "core/cli/open_runtime.h"

#include <boost/dll/runtime_symbol_info.hpp>
#include <boost/dll/shared_library.hpp>
#include <cstdlib>
#include <exception>
#include <filesystem>

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
  try {
    namespace dll = boost::dll;
    // Never closed: LibTorch cannot be unloaded.
    auto* library =
        new dll::shared_library(file, dll::load_mode::rtld_now | dll::load_mode::rtld_local);
    opened = library->get<Runtime*()>("piper_runtime")();
  } catch (const std::exception& caught) {
    return fail(error("runtime.load", std::string("the runtime cannot be loaded: ") + caught.what(),
                      {file}));
  }
  return opened;
}

}  // namespace piper

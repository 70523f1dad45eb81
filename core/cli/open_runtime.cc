#include "core/cli/open_runtime.h"

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "core/base/shared_library.h"
#include "core/cli/find_libtorch.h"

namespace piper {
namespace {

namespace fs = std::filesystem;

Runtime* opened = nullptr;

// Never closed: LibTorch cannot be unloaded.
Expected<SharedLibrary> open_library(const std::string& file, const std::string& what) {
  auto library = SharedLibrary::open(file);
  if (!library) {
    Diagnostic failed =
        error("runtime.load", what + " cannot be loaded: " + library.error().why, {file});
    failed.note(how_to_get_libtorch());
    return fail(std::move(failed));
  }
  return *library;
}

}  // namespace

bool is_runtime_open() {
  return opened != nullptr;
}

std::string install_prefix() {
  return fs::canonical("/proc/self/exe").parent_path().parent_path();
}

std::string runtime_file() {
  if (const char* given = ::secure_getenv("PIPER_RUNTIME"); given != nullptr && *given != '\0') {
    return fs::absolute(given).lexically_normal();
  }
  return fs::path(install_prefix()) / "lib" / "libpiper_runtime.so";
}

Expected<Runtime*> open_runtime() {
  if (opened != nullptr) {
    return opened;
  }
  const std::string file = runtime_file();
  if (!fs::exists(file)) {
    return fail(error("runtime.missing",
                      "expected the runtime, got no such file; this build of Piper plans from "
                      "captured graphs alone ([model] graph)",
                      {file}));
  }
  PIPER_ASSIGN(const LibTorch torch, find_libtorch(file));
  if (!torch.library.empty()) {
    // The runtime asks for this library by its name, and gets the one that is loaded already.
    PIPER_TRY(open_library(torch.library, "LibTorch"));
  }
  PIPER_ASSIGN(const SharedLibrary library, open_library(file, "the runtime"));
  const auto runtime = library.find<Runtime*()>("piper_runtime");
  if (runtime == nullptr) {
    return fail(error("runtime.load", "expected the runtime, got a library that is none", {file}));
  }
  opened = runtime();
  return opened;
}

}  // namespace piper

#include "core/cli/version.h"

#include <filesystem>

#include "core/cli/find_libtorch.h"
#include "core/cli/open_runtime.h"
#include "core/plugin/abi.h"

namespace piper {
namespace {

std::string libtorch_text() {
  if (libtorch_built_with().empty()) {
    return "none: this build plans, and does not train";
  }
  const std::string built = "built with " + libtorch_built_with() + "; ";
  if (!std::filesystem::exists(runtime_file())) {
    return built + "the runtime is not there: " + runtime_file();
  }
  const auto found = find_libtorch(runtime_file());
  if (!found) {
    return built + "not found: " + how_to_get_libtorch();
  }
  return built + "found " + (found->version.empty() ? "a LibTorch" : found->version) + " (" +
         found->because + (found->library.empty() ? "" : ": " + found->library) + ')';
}

}  // namespace

std::string version_text() {
  const AbiVersion abi = host_abi();
  return "piper " PIPER_VERSION "\nplugin ABI  " + std::to_string(abi.major) + '.' +
         std::to_string(abi.minor) + "\nLibTorch    " + libtorch_text() +
         "\nbuild       " PIPER_BUILD_TYPE ", " PIPER_COMPILER;
}

}  // namespace piper

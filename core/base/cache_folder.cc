#include "core/base/cache_folder.h"

#include <cstdlib>
#include <string_view>

namespace piper {

std::filesystem::path cache_folder() {
  for (const std::string_view name : {"PIPER_CACHE", "XDG_CACHE_HOME", "HOME"}) {
    const char* value = std::getenv(name.data());
    const std::filesystem::path path = value == nullptr ? "" : value;
    if (path.is_absolute()) {
      return name == "PIPER_CACHE" ? path : (name == "HOME" ? path / ".cache" : path) / "piper";
    }
  }
  return {};
}

}  // namespace piper

#pragma once

#include <string>

namespace piper {

// What `piper --version` prints: the version, the ABI of plugins, LibTorch (built with, found),
// the build type and the compiler. No final newline.
std::string version_text();

}  // namespace piper

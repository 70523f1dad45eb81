// Where the installed runtime gets LibTorch from. The runtime is linked to libtorch_cpu.so by name
// alone; which file that is, is decided here.
#pragma once

#include <string>

#include "core/base/diagnostic.h"

namespace piper {

struct LibTorch {
  std::string library;  // .../libtorch_cpu.so; "" = what the loader finds by itself
  std::string version;  // "2.11.0+cu130"; "" where nothing beside it says so
  std::string because;  // "PIPER_LIBTORCH", "beside the runtime", ...
};

// The first of these that holds a LibTorch of the version that the runtime was built with:
//   1. PIPER_LIBTORCH; where it is set, nothing else is tried
//   2. torch in the folder of the runtime: a link that whoever installs may make
//   3. torch beside the installation: where pip puts both, site-packages
//   4. the folders of LD_LIBRARY_PATH
//   5. the package torch of the python3 or python that is first on PATH
// else the loader's own places, if it finds the library there. `runtime`: the runtime's file.
// Codes: libtorch.missing, libtorch.version, both with what to do.
Expected<LibTorch> find_libtorch(const std::string& runtime);

// The version that the runtime was built with, "2.11.0"; "" in a build without the runtime.
std::string libtorch_built_with();

// "Piper needs LibTorch 2.11: pip install torch==2.11.0 ...": the note of every error about it.
std::string how_to_get_libtorch();

}  // namespace piper

// Opens libpiper_runtime.so, for the commands that need tensors.
#pragma once

#include <string>

#include "core/base/diagnostic.h"
#include "core/runtime_interface.h"

namespace piper {

// The folder that holds bin/piper. Absolute.
std::string install_prefix();

// The file that would be opened: the environment's PIPER_RUNTIME, else lib/ beside the program's
// bin/. Absolute; need not exist.
std::string runtime_file();

// Opens it the first time, after the LibTorch that find_libtorch() chooses; both stay open until
// the process ends. Codes: runtime.missing, runtime.load, and those of find_libtorch().
Expected<Runtime*> open_runtime();
bool is_runtime_open();

}  // namespace piper

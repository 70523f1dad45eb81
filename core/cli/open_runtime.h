// Opens libpiper_runtime.so, for the commands that need tensors.
#pragma once

#include <string>

#include "core/base/diagnostic.h"
#include "core/runtime_interface.h"

namespace piper {

// The file that would be opened: the environment's PIPER_RUNTIME, else lib/ beside the program's
// bin/. Absolute; need not exist.
std::string runtime_file();

// Opens it the first time; it stays open until the process ends. Codes: runtime.missing,
// runtime.load.
Expected<Runtime*> open_runtime();
bool is_runtime_open();

}  // namespace piper

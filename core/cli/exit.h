// How the program ends.
#pragma once

#include "core/base/diagnostic.h"

namespace piper {

enum class Exit : int {
  done = 0,
  failed = 1,         // while running, or parity was not met
  refused = 2,        // before anything ran
  interrupted = 130,  // Ctrl-C
};

// Prints errors, or warnings, on standard error.
void report(const Diagnostics& diagnostics);

// Prints the errors and gives the status to end with.
Exit report(const Diagnostics& errors, Exit exit);

}  // namespace piper

// How the program ends.
#pragma once

#include <string_view>

#include "core/base/diagnostic.h"

namespace piper {

enum class Exit : int {
  done = 0,
  failed = 1,         // while running, or parity was not met
  refused = 2,        // before anything ran
  interrupted = 130,  // Ctrl-C
};

// Prints errors, or warnings unless --log-level leaves them out, on standard error.
void report(const Diagnostics& diagnostics);

// A line of a run on standard output, unless --log-level leaves it out.
void say(std::string_view line);

// Prints the errors and gives the status to end with.
Exit report(const Diagnostics& errors, Exit exit);

}  // namespace piper

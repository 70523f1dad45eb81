// Standard input, output and error, as the program is started with them.
#pragma once

#include "core/base/diagnostic.h"

namespace piper {

// Those that are closed are /dev/null from here on: otherwise the next file that is opened would be
// one of them, and would be printed to. Before anything opens a file.
void secure_standard_streams();

// From here on what fails of std::cout is remembered. Once.
void watch_standard_output();

// Writes out what is left for standard output, of std::cout and of stdout. Error cli.stdout where
// that, or anything before it, could not be written.
Status flush_standard_output();

}  // namespace piper

// Reads what a plugin carries before it is loaded: loading runs constructors, and a cut-off file
// kills the process.
#pragma once

#include <string>
#include <string_view>

#include "core/base/diagnostic.h"

namespace piper {

// The contents of section `name` of the shared library in `bytes`, which must be one that this
// machine can load and be all there. `file` is for messages. Codes: plugin.not_a_library,
// plugin.wrong_machine, plugin.truncated, plugin.no_manifest (no such section, or not a readable
// one).
Expected<std::string> elf_section(std::string_view bytes, std::string_view name,
                                  const std::string& file);

// Reads the whole file; refuses what is no regular file or larger than 1 GiB. Code:
// plugin.unreadable.
Expected<std::string> read_library(const std::string& file);

}  // namespace piper

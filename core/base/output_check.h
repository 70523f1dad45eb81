// Looks at the files that a command will write before it does anything.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/diagnostic.h"

namespace piper {

// A file, or a folder that gets `files`.
struct Output {
  std::string what;  // how the user named it: "metrics.file", "--costs"
  std::string path;
  Location where = {};
  std::vector<std::string> files = {};  // names in the folder; empty: the path is a file
  std::int64_t bytes = 1;               // that there must be room for
};

// A file, or a folder with all that is below it.
struct Input {
  std::string what;
  std::string path;
  // A folder that may be saved to as well: nothing of it is needed once the weights are loaded, and
  // what is saved there replaces it as a whole.
  bool replaceable = false;
};

// Every output can be written: its folder is there or can be made, it is no folder where a file is
// wanted, and the disk has room. None is the same file as an input or another output, however many
// links lead there; devices and pipes may be named twice. Leaves nothing behind. Codes:
// output.unwritable, output.no_room, output.is_input, output.twice.
Status check_outputs(const std::vector<Output>& outputs, const std::vector<Input>& inputs);

}  // namespace piper

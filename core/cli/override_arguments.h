// The overrides among the arguments of the program.
#pragma once

#include <string>
#include <vector>

namespace piper {

// Removes the overrides from the arguments and gives them as load_config wants them. An override is
// an option with a dot in its name:
//
//   --section.key=value   -> section.key=value
//   --section.key value   -> section.key=value
//   --section.key         -> section.key=true, where the key is true or false
//
// The next argument is no value where it is an option, where the key is true or false and it is
// neither, and where it can only be the job file: it ends in .toml, and the key takes no text or no
// other argument ends so. An override that is left without a value stays without `=`, which
// load_config refuses.
std::vector<std::string> take_overrides(std::vector<std::string>& arguments);

}  // namespace piper

// The models that Piper brings, by the name that [model] name gives.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/model/build.h"

namespace piper {

// Null where there is none of that name.
ModelFunction built_in_model(std::string_view name);
std::vector<std::string> built_in_models();

}  // namespace piper

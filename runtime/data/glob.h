// The paths that a pattern names.
#pragma once

#include <string>
#include <vector>

#include "core/base/diagnostic.h"

namespace piper {

bool is_glob(const std::string& entry);

// `*`, `?` and `[...]` are those of glob(7): within a name, and never a dot at its start. A
// component `**` is any number of folders, none included; it goes into neither hidden folders nor
// links to folders, so a loop of links ends. In no order; a path may come twice. A folder that
// cannot be read is an error at `where`.
Expected<std::vector<std::string>> expand_glob(const std::string& pattern, const Location& where);

}  // namespace piper

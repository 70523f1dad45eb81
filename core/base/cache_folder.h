// Where files go that only save time.
#pragma once

#include <filesystem>

namespace piper {

// PIPER_CACHE, else piper/ in XDG_CACHE_HOME or in ~/.cache. "" where none of them is an absolute
// path: relative ones are ignored, as XDG's rules want it.
std::filesystem::path cache_folder();

}  // namespace piper

// Names that are spelled in several ways.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace piper {

// The one of `known` that `text` means: the same, or the same but for upper and lower case, `_` and
// `-`, as TorchTitan's "AdamW" and "LoopedBFS" are "adamw" and "looped_bfs". "" where it is none.
std::string known_spelling(std::string_view text, const std::vector<std::string>& known);

}  // namespace piper

// Labels of rows.
#pragma once

#include <cstdint>

namespace piper {

// A label that is not counted; what LibTorch's losses ignore where nothing else is said.
inline constexpr std::int64_t kIgnoredLabel = -100;

}  // namespace piper

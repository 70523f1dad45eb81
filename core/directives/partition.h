// Cuts a sequence of costs into consecutive parts.
#pragma once

#include <cstdint>
#include <vector>

namespace piper {

// The first item of each part (so the first entry is 0): `parts` consecutive non-empty parts with
// the smallest possible largest sum; among those, earlier parts are as large as that allows.
// `parts` is at most the number of items. Exact: bisection on the largest sum.
std::vector<std::uint32_t> balanced_cut(const std::vector<std::uint64_t>& costs,
                                        std::uint32_t parts);

}  // namespace piper

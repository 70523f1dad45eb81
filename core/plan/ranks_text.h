#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace piper {

// `rank 1`, `ranks 1, 3`, the first eight of them: for messages.
std::string ranks_text(const std::vector<std::uint32_t>& ranks);

}  // namespace piper

// Amounts of memory, as people write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace piper {

// 1536 -> "1.5 KiB".
std::string human_bytes(std::int64_t bytes);

// "40GiB", "1.5 GB", "4096": a number above 0 and B, KB, MB, GB, TB or KiB, MiB, GiB, TiB.
// Nothing where it is something else, or more than 2^62 bytes.
std::optional<std::int64_t> parse_bytes(std::string_view text);

}  // namespace piper

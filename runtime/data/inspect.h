// What the first bytes of a file say about the rest.
#pragma once

#include <string>
#include <string_view>

namespace piper {

inline constexpr std::size_t kInspected = 1 << 16;  // bytes that are enough

// What a file that is not text is, with its article: "a PNG image", "gzip data". "" = text,
// as far as `start` shows it: UTF-8, at least nine tenths of it, without bytes of 0.
std::string not_text(std::string_view start);

}  // namespace piper

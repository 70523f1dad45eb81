// UTF-8, which job files and the texts of plugins are in.
#pragma once

#include <cstddef>
#include <string_view>

namespace piper {

// Length of the sequence at the start of `text`, 0 where there is none: overlong forms, surrogates
// and what is above U+10FFFF are none.
std::size_t sequence_length(std::string_view text);

// How many bytes from the start on are UTF-8: all, where the text is.
std::size_t utf8_prefix(std::string_view text);
inline bool is_utf8(std::string_view text) {
  return utf8_prefix(text) == text.size();
}

}  // namespace piper

// UTF-8, which job files are in.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/base/diagnostic.h"

namespace piper {

// Length of the sequence at the start of `text`, 0 where there is none.
std::size_t sequence_length(std::string_view text);

// Points at the first byte that is not UTF-8. Code: config.encoding.
Status check_encoding(std::string_view text, const std::string& file);

}  // namespace piper

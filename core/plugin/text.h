// Small tests of texts that plugins and manifests give us.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace piper {

// [a-z][a-z0-9_]*: ids, option names, capability ids.
constexpr bool is_identifier(std::string_view text) {
  if (text.empty() || text[0] < 'a' || text[0] > 'z') {
    return false;
  }
  for (const char c : text) {
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_')) {
      return false;
    }
  }
  return true;
}

// `1`, `1.2` or `1.2.3`, missing parts 0; nothing else.
inline std::optional<std::array<std::uint32_t, 3>> parse_version(std::string_view text) {
  std::array<std::uint32_t, 3> parts{};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto [next, failure] = std::from_chars(at, end, parts[i]);
    if (failure != std::errc() || next == at) {
      return std::nullopt;
    }
    if (next == end) {
      return parts;
    }
    if (*next != '.') {
      return std::nullopt;
    }
    at = next + 1;
  }
  return std::nullopt;
}

}  // namespace piper

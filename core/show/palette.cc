#include "core/show/palette.h"

#include <cstdio>

namespace piper {
Colour colour_of(Paint paint) {
  switch (paint) {
    case Paint::forward:
      return {0x77, 0xaa, 0xdd};  // light blue
    case Paint::recompute:
      return {0xbb, 0xcc, 0x33};  // pear
    case Paint::backward:
      return {0xee, 0x88, 0x66};  // orange
    case Paint::backward_weight:
      return {0xee, 0xdd, 0x88};  // light yellow
    case Paint::update:
      return {0xaa, 0xaa, 0x00};  // olive
    case Paint::message:
      return {0x55, 0x55, 0x55};
    case Paint::reduction:
      return {0x44, 0xbb, 0x99};  // mint
    case Paint::gather:
      return {0x99, 0xdd, 0xff};  // light cyan
    case Paint::routing:
      return {0xff, 0xaa, 0xbb};  // pink
    case Paint::scalar:
      return {0xbb, 0xbb, 0xbb};
    case Paint::input:
      return {0xdd, 0xdd, 0xdd};  // pale grey
  }
  return {};
}

Colour lighter(Colour colour, double by) {
  const auto mix = [by](std::uint8_t part) {
    return static_cast<std::uint8_t>(part + (255 - part) * by + 0.5);
  };
  return {mix(colour.red), mix(colour.green), mix(colour.blue)};
}

std::string to_string(Colour colour) {
  char text[8];
  std::snprintf(text, sizeof text, "#%02x%02x%02x", unsigned{colour.red}, unsigned{colour.green},
                unsigned{colour.blue});
  return text;
}

std::string legend_of(Paint paint, const std::vector<bool>& has) {
  std::string text;
  for (std::size_t op = 0; op < has.size(); ++op) {
    if (has[op] && kOpTraits[op].paint == paint) {
      text += (text.empty() ? "" : ", ") + std::string(kOpTraits[op].legend);
    }
  }
  return text;
}

}  // namespace piper

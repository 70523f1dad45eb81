// The colours of pictures: Paul Tol's "light" scheme (distinct with any colour vision, and black
// text is readable on each; personal.sron.nl/~pault), one for each kind of work.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/plan/op.h"

namespace piper {

struct Colour {
  std::uint8_t red = 0, green = 0, blue = 0;
};

Colour colour_of(Paint paint);
Colour lighter(Colour colour, double by);  // 0: the same; 1: white
std::string to_string(Colour colour);      // "#77aadd"

// The operations of a paint that a plan has, as a legend says them: "B", "send, receive".
std::string legend_of(Paint paint, const std::vector<bool>& has);  // by Op

}  // namespace piper

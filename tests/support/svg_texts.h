// Where a picture's texts lie.
#pragma once

#include <string>

namespace piper::test {

// Fails where two texts of the SVG, as wide as text_width says, overlap, where one leaves the
// picture, or where one lies over a square of a legend (a rectangle of 12 by 12).
void expect_texts_apart(const std::string& svg);

}  // namespace piper::test

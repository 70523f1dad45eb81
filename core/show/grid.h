// A picture of work on rows over time: a plan by unit times, or a simulated or measured run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/show/palette.h"

namespace piper {

struct GridRow {
  std::string group;  // rows of one group are together; named once, at the first
  std::string label;
  bool tall = true;  // tall: the labels of boxes are drawn
};

// Boxes of a row do not overlap in time.
struct GridBox {
  std::uint32_t row = 0;
  double begin = 0, end = 0;
  Colour fill;
  std::string label;  // inside; left out where it does not fit
  std::string title;  // shown on hovering
};

// From the end of one box to the start of another.
struct GridLink {
  std::uint32_t from = 0, to = 0;  // boxes
};

struct GridKey {
  Colour fill;
  std::string label;
};

struct Grid {
  std::string title;
  std::vector<std::string> facts;  // smaller lines under it
  std::vector<GridKey> legend;
  std::string axis;      // what the numbers under the grid are
  double unit = 40;      // pixels of one unit of time, where that fits
  double widest = 2400;  // of the rows, in pixels
  std::vector<GridRow> rows;
  std::vector<GridBox> boxes;
  std::vector<GridLink> links;
};

// Pixels that a box needs for its label.
double box_width(const std::string& label);

std::string svg(const Grid& grid);

}  // namespace piper

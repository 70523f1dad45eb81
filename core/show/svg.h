// The few shapes that pictures are made of, as SVG 1.1 text. Lengths are pixels; numbers are
// written with at most two decimals and a point, whatever the locale. Text is escaped.
#pragma once

#include <string>
#include <string_view>

#include "core/show/palette.h"

namespace piper {

struct TextStyle {
  double size = 11;
  std::string_view anchor = "start";  // start, middle, end
  std::string_view fill = "#222222";
  bool bold = false;
};

class Svg {
 public:
  Svg(double width, double height);

  // `title` is what a viewer shows on hovering; "": nothing. `stroke` "": no outline.
  void rectangle(double x, double y, double width, double height, std::string_view fill,
                 std::string_view stroke = "", std::string_view title = "");
  void line(double x1, double y1, double x2, double y2, std::string_view stroke, double width,
            double opacity = 1);
  void text(double x, double y, std::string_view text, const TextStyle& style = {});

  std::string finish() { return out_ + "</svg>\n"; }

 private:
  std::string out_;
};

std::string svg_number(double value);
std::string xml_escaped(std::string_view text);

// At least as wide as the text is drawn, whichever of the usual faces a renderer has.
double text_width(std::string_view text, double size, bool bold = false);

}  // namespace piper

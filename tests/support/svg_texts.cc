#include "tests/support/svg_texts.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>
#include <vector>

#include "core/show/svg.h"

namespace piper::test {
namespace {

struct Box {
  std::string what;
  double left = 0, top = 0, right = 0, bottom = 0;
};

std::string attribute(std::string_view element, std::string_view name) {
  const std::size_t at = element.find(' ' + std::string(name) + "=\"");
  if (at == std::string_view::npos) {
    return "";
  }
  const std::size_t begin = at + name.size() + 3;
  return std::string(element.substr(begin, element.find('"', begin) - begin));
}

double number(std::string_view element, std::string_view name) {
  return std::atof(attribute(element, name).c_str());
}

// Elements of one kind with what is inside them.
std::vector<std::string_view> elements(std::string_view svg, std::string_view tag) {
  std::vector<std::string_view> found;
  const std::string open = '<' + std::string(tag) + ' ';
  for (std::size_t at = svg.find(open); at != std::string_view::npos; at = svg.find(open, at + 1)) {
    found.push_back(svg.substr(at, svg.find('\n', at) - at));
  }
  return found;
}

Box box_of(std::string_view text) {
  const std::size_t begin = text.find('>') + 1;
  Box box{std::string(text.substr(begin, text.find("</text>") - begin))};
  const double size = number(text, "font-size");
  const double width = text_width(box.what, size, attribute(text, "font-weight") == "bold");
  const std::string anchor = attribute(text, "text-anchor");
  const double shift = anchor == "middle" ? width / 2 : anchor == "end" ? width : 0;
  box.left = number(text, "x") - shift;
  box.right = box.left + width;
  box.top = number(text, "y") - 0.7 * size;
  box.bottom = number(text, "y");
  return box;
}

bool overlap(const Box& a, const Box& b) {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

}  // namespace

void expect_texts_apart(const std::string& svg) {
  std::vector<Box> boxes;
  const double width = number(svg, "width"), height = number(svg, "height");
  for (const std::string_view text : elements(svg, "text")) {
    boxes.push_back(box_of(text));
    EXPECT_GE(boxes.back().left, 0) << boxes.back().what;
    EXPECT_LE(boxes.back().right, width) << boxes.back().what;
    EXPECT_LE(boxes.back().bottom, height) << boxes.back().what;
  }
  EXPECT_FALSE(boxes.empty());
  for (const std::string_view square : elements(svg, "rect")) {
    if (attribute(square, "width") == "12" && attribute(square, "height") == "12") {
      const double x = number(square, "x"), y = number(square, "y");
      boxes.push_back({"a square of the legend", x, y, x + 12, y + 12});
    }
  }
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      EXPECT_FALSE(overlap(boxes[i], boxes[j])) << boxes[i].what << " and " << boxes[j].what;
    }
  }
}

}  // namespace piper::test

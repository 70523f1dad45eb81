#include "core/show/svg.h"

#include <array>
#include <cmath>
#include <cstdint>

namespace piper {
namespace {

// How wide the characters from ' ' to '~' are, in hundredths of the size: each as in the widest of
// the faces that a renderer may take for the family that we name, DejaVu Sans, Liberation Sans
// (which is as wide as Helvetica and Arial) and Noto Sans.
constexpr std::array<std::uint8_t, 95> kRegular{
    32, 41, 46, 84, 64, 96, 78, 28, 40,  40, 56, 84, 32, 37, 32, 38, 64, 64, 64, 64, 64, 64, 64, 64,
    64, 64, 34, 34, 84, 84, 84, 56, 102, 69, 69, 73, 78, 67, 62, 78, 76, 34, 50, 67, 56, 91, 76, 79,
    67, 79, 73, 67, 62, 74, 69, 99, 69,  67, 69, 40, 38, 40, 84, 56, 50, 62, 64, 55, 64, 62, 36, 64,
    64, 28, 28, 58, 28, 98, 64, 62, 64,  64, 42, 53, 40, 64, 60, 82, 60, 60, 53, 64, 56, 64, 84};
constexpr std::array<std::uint8_t, 95> kBold{
    35, 46,  53, 84, 70, 101, 88, 31,  46, 46, 55, 84, 38, 42,  38, 42, 70, 70,  70,
    70, 70,  70, 70, 70, 70,  70, 40,  40, 84, 84, 84, 62, 100, 78, 77, 74, 84,  69,
    69, 83,  84, 39, 56, 78,  64, 100, 84, 86, 74, 86, 78, 73,  69, 82, 78, 111, 78,
    73, 73,  46, 42, 46, 84,  56, 50,  68, 72, 60, 72, 68, 44,  72, 72, 35, 35,  67,
    35, 105, 72, 69, 72, 72,  50, 60,  48, 72, 66, 93, 65, 66,  59, 72, 56, 72,  84};
constexpr double kOther = 100;  // of any other character: a dash, an ellipsis

}  // namespace

Svg::Svg(double width, double height) {
  const std::string w = svg_number(width), h = svg_number(height);
  out_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + w + "\" height=\"" + h +
         "\" viewBox=\"0 0 " + w + " " + h +
         "\" font-family=\"Helvetica, Arial, 'Liberation Sans', sans-serif\">\n";
  rectangle(0, 0, width, height, "#ffffff");
}

void Svg::rectangle(double x, double y, double width, double height, std::string_view fill,
                    std::string_view stroke, std::string_view title) {
  out_ += "<rect x=\"" + svg_number(x) + "\" y=\"" + svg_number(y) + "\" width=\"" +
          svg_number(width) + "\" height=\"" + svg_number(height) + "\" fill=\"";
  out_ += fill;
  if (!stroke.empty()) {
    out_ += "\" stroke=\"";
    out_ += stroke;
    out_ += "\" stroke-width=\"0.6";
  }
  out_ += title.empty() ? "\"/>\n" : "\"><title>" + xml_escaped(title) + "</title></rect>\n";
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view stroke, double width,
               double opacity) {
  out_ += "<line x1=\"" + svg_number(x1) + "\" y1=\"" + svg_number(y1) + "\" x2=\"" +
          svg_number(x2) + "\" y2=\"" + svg_number(y2) + "\" stroke=\"";
  out_ += stroke;
  out_ += "\" stroke-width=\"" + svg_number(width);
  out_ += opacity < 1 ? "\" stroke-opacity=\"" + svg_number(opacity) + "\"/>\n" : "\"/>\n";
}

void Svg::text(double x, double y, std::string_view text, const TextStyle& style) {
  out_ += "<text x=\"" + svg_number(x) + "\" y=\"" + svg_number(y) + "\" font-size=\"" +
          svg_number(style.size) + "\"";
  if (style.anchor != "start") {
    out_ += " text-anchor=\"" + std::string(style.anchor) + "\"";
  }
  out_ += style.bold ? " font-weight=\"bold\"" : "";
  out_ += " fill=\"" + std::string(style.fill) + "\">" + xml_escaped(text) + "</text>\n";
}

std::string svg_number(double value) {
  const std::int64_t hundredths = std::llround(value * 100);
  const std::int64_t magnitude = hundredths < 0 ? -hundredths : hundredths;
  std::string text = (hundredths < 0 ? "-" : "") + std::to_string(magnitude / 100);
  if (const std::int64_t rest = magnitude % 100; rest != 0) {
    text += rest < 10 ? ".0" : ".";
    text += std::to_string(rest % 10 == 0 ? rest / 10 : rest);
  }
  return text;
}

std::string xml_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

double text_width(std::string_view text, double size, bool bold) {
  const auto& widths = bold ? kBold : kRegular;
  double hundredths = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_continued = (byte & 0xc0U) == 0x80U;
    hundredths += is_continued ? 0 : byte >= 0x20U && byte < 0x7fU ? widths[byte - 0x20U] : kOther;
  }
  return hundredths * size / 100;
}

}  // namespace piper

#include "core/show/svg.h"

#include <cmath>
#include <cstdint>

namespace piper {

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

double text_width(std::string_view text, double size) {
  constexpr std::string_view kNarrow = " ,.:;!|'()[]/-ijltfrI", kWide = "mwMW%@";
  double ems = 0;
  for (const char c : text) {
    const bool is_continued = (static_cast<unsigned char>(c) & 0xc0U) == 0x80U;
    ems += is_continued                                ? 0
           : kNarrow.find(c) != std::string_view::npos ? 0.31
           : kWide.find(c) != std::string_view::npos   ? 0.88
           : c >= 'A' && c <= 'Z'                      ? 0.69
                                                       : 0.55;
  }
  return ems * size;
}

}  // namespace piper

#include "core/show/palette.h"

#include <cstdio>

namespace piper {
namespace {

// As a legend names an operation.
std::string_view legend_name(Op op) {
  switch (op) {
    case Op::forward:
      return "F forward";
    case Op::backward:
      return "B backward";
    case Op::backward_input:
      return "BI backward, inputs";
    case Op::backward_weight:
      return "BW backward, weights";
    case Op::recompute:
      return "R recomputed forward";
    case Op::recv:
      return "receive";
    case Op::all_reduce:
      return "all-reduce";
    case Op::reduce_scatter:
      return "reduce-scatter";
    case Op::all_gather:
      return "all-gather";
    case Op::all_to_all:
      return "all-to-all";
    case Op::token_count:
      return "token count";
    case Op::grad_norm:
      return "gradient norm";
    case Op::finite_check:
      return "finite check";
    case Op::loss_report:
      return "loss report";
    case Op::state_update:
      return "state update";
    default:
      return to_string(op);
  }
}

}  // namespace

Paint paint_of(Op op) {
  switch (op) {
    case Op::forward:
      return Paint::forward;
    case Op::recompute:
      return Paint::recompute;
    case Op::backward:
    case Op::backward_input:
      return Paint::backward;
    case Op::backward_weight:
      return Paint::backward_weight;
    case Op::update:
    case Op::state_update:
      return Paint::update;
    case Op::send:
    case Op::recv:
      return Paint::message;
    case Op::all_reduce:
    case Op::reduce_scatter:
      return Paint::reduction;
    case Op::all_gather:
    case Op::broadcast:
      return Paint::gather;
    case Op::all_to_all:
      return Paint::routing;
    case Op::input:
      return Paint::input;
    default:
      return Paint::scalar;
  }
}

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
    if (has[op] && paint_of(static_cast<Op>(op)) == paint) {
      text += (text.empty() ? "" : ", ") + std::string(legend_name(static_cast<Op>(op)));
    }
  }
  return text;
}

}  // namespace piper

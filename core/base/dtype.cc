#include "core/base/dtype.h"

#include <array>
#include <utility>

namespace piper {
namespace {

constexpr std::array<std::pair<DType, std::string_view>, 5> kNames{{
    {DType::float32, "float32"},
    {DType::float64, "float64"},
    {DType::bfloat16, "bfloat16"},
    {DType::int64, "int64"},
    {DType::boolean, "bool"},
}};

}  // namespace

std::uint32_t size_of(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return 4;
    case DType::float64:
    case DType::int64:
      return 8;
    case DType::bfloat16:
      return 2;
    case DType::boolean:
      return 1;
  }
  return 0;
}

bool is_floating(DType dtype) {
  return dtype == DType::float32 || dtype == DType::float64 || dtype == DType::bfloat16;
}

std::string_view to_string(DType dtype) {
  for (const auto& [value, name] : kNames) {
    if (value == dtype) {
      return name;
    }
  }
  return "?";
}

std::optional<DType> parse_dtype(std::string_view name) {
  for (const auto& [value, known] : kNames) {
    if (known == name) {
      return value;
    }
  }
  return std::nullopt;
}

DType gradient_dtype(DType parameter) {
  return parameter == DType::float64 ? DType::float64 : DType::float32;
}

}  // namespace piper

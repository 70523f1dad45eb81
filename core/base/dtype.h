// Element types of tensors, as the planner knows them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace piper {

enum class DType : std::uint8_t { float32, float64, bfloat16, int64, boolean };

// Bytes of one element.
std::uint32_t size_of(DType dtype);
bool is_floating(DType dtype);
std::string_view to_string(DType dtype);
std::optional<DType> parse_dtype(std::string_view name);

// The type in which gradients of a parameter accumulate and are reduced: float32, or wider where it
// is wider.
DType gradient_dtype(DType parameter);

}  // namespace piper

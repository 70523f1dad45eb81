// Floating-point operations of one tensor operation.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <string>

namespace piper {

// Matrix products and attention count 2 for a multiply-add (causal attention half the square); what
// makes new floating-point elements from others counts 1 an element, of the larger side; views and
// fills count 0.
std::int64_t flops(const std::string& name, c10::ArrayRef<c10::IValue> arguments,
                   c10::ArrayRef<c10::IValue> results);

}  // namespace piper

// Loops of tasks over memory, where LibTorch's operators would read it several times. They run on a
// CPU. docs/devices.md lists all of the runtime's.
#pragma once

#include <ATen/core/Tensor.h>

namespace piper {

// sum += the labels that count. `sum`: one element, float64.
void add_counted(const at::Tensor& labels, const at::Tensor& sum);

// sum += the squares of `values`, flat, float32 or float64.
void add_squares(const at::Tensor& values, const at::Tensor& sum);

// sum += value, of one element and any floating type, without a copy in the other's type.
void add_number(const at::Tensor& value, const at::Tensor& sum);

// Fills `to`, of any floating type, with 1 / count, or with 0 where the count is 0. `count`: one
// element, float64.
void fill_with_inverse(const at::Tensor& count, const at::Tensor& to);

}  // namespace piper

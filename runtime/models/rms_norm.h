// x / sqrt(mean(x^2) + eps) * weight over the last dimension.
#pragma once

#include <ATen/core/Tensor.h>

namespace piper {

// bfloat16 is computed in float32 and rounded before and after the weight, as Hugging Face does.
// Differentiable in `input` and `weight`; backward computes only the gradients that are asked for.
at::Tensor rms_norm(const at::Tensor& input, const at::Tensor& weight, double eps);

}  // namespace piper

// Norms and attention as Hugging Face computes them when a model is in float64: through float32.
//
// Its implementation casts to float32 inside RMSNorm and softmax whatever the model's type. In
// float32 and bfloat16 that is what any implementation does; in float64 the figures of the two
// differ by 1e-8, so a model that comes from one of its config.json files is computed its way.
// Everything else is computed in float64 throughout.
#pragma once

#include <ATen/core/Tensor.h>

namespace piper {

at::Tensor rms_norm_through_float32(const at::Tensor& input, const at::Tensor& weight, double eps);

// Causal. Shapes are [rows, heads, positions, head_dim]; key and value may have fewer heads.
at::Tensor attention_through_float32(const at::Tensor& query, const at::Tensor& key,
                                     const at::Tensor& value);

}  // namespace piper

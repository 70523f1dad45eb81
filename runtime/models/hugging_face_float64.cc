#include "runtime/models/hugging_face_float64.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/triu.h>

#include <cmath>
#include <limits>

namespace piper {

using at::Tensor;

Tensor rms_norm_through_float32(const Tensor& input, const Tensor& weight, double eps) {
  const Tensor x = input.to(at::kFloat);
  const Tensor normalised = x * at::rsqrt(at::mean(at::pow(x, 2), -1, /*keepdim=*/true) + eps);
  return weight * normalised.to(input.scalar_type());
}

Tensor attention_through_float32(const Tensor& query, const Tensor& key, const Tensor& value) {
  const std::int64_t positions = query.size(2);
  const std::int64_t shared = query.size(1) / key.size(1);
  const Tensor future = at::ones({positions, positions}, query.options().dtype(at::kBool)).triu(1);
  const Tensor scores = at::matmul(query, key.repeat_interleave(shared, 1).transpose(2, 3)) *
                        (1 / std::sqrt(static_cast<double>(query.size(3))));
  const Tensor weights = at::softmax(
      scores.masked_fill(future, -std::numeric_limits<double>::infinity()), -1, at::kFloat);
  return at::matmul(weights.to(query.scalar_type()), value.repeat_interleave(shared, 1));
}

}  // namespace piper

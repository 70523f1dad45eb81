#include "runtime/models/hugging_face_float64.h"

#include <ATen/TensorOperators.h>
#include <ATen/Version.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/triu.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>
#include <limits>

namespace piper {

using at::Tensor;

namespace {

// How many float32 numbers LibTorch's kernels take at once on this processor.
std::int64_t lanes() {
  static const std::int64_t count = at::get_cpu_capability() == "AVX512" ? 16 : 8;
  return count;
}

// Softmax over the last dimension, with a backward that rounds as LibTorch's does on several
// threads of this processor, which is what the reference values were made with. On one thread
// LibTorch's own adds fused products on some processors, and rounds otherwise: in float32 that
// shows.
class Softmax : public torch::autograd::Function<Softmax> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& scores) {
    const Tensor weights = at::softmax(scores, -1);
    context->save_for_backward({weights});
    return weights;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const Tensor weights = context->get_saved_variables()[0];
    return {(gradients[0] - sum_by_lanes(gradients[0] * weights)) * weights};
  }

 private:
  static Tensor sum_by_lanes(const Tensor& terms) {
    const std::int64_t width = lanes();
    const std::int64_t missing = (width - terms.size(-1) % width) % width;
    const Tensor padded = at::constant_pad_nd(terms, {0, missing});
    Tensor sums = padded.narrow(-1, 0, width);
    for (std::int64_t at = width; at < padded.size(-1); at += width) {
      sums = sums + padded.narrow(-1, at, width);
    }
    for (std::int64_t half = width / 2; half > 0; half /= 2) {
      sums = sums.narrow(-1, 0, half) + sums.narrow(-1, half, half);
    }
    return sums;
  }
};

}  // namespace

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
  const Tensor weights = Softmax::apply(
      scores.masked_fill(future, -std::numeric_limits<double>::infinity()).to(at::kFloat));
  return at::matmul(weights.to(query.scalar_type()), value.repeat_interleave(shared, 1));
}

}  // namespace piper

#include "runtime/models/rms_norm.h"

#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/rms_norm.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace piper {
namespace {

using at::Tensor;

constexpr std::int64_t kLanes = 16;  // partial sums that a vector unit can hold
constexpr std::int64_t kElementsATask = 32768;

// The sum of term(i) for i < size, in kLanes partial sums.
template <typename Sum, typename Term>
Sum lane_sum(std::int64_t size, Term&& term) {
  Sum lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] += term(i + lane);
    }
  }
  Sum sum = 0;
  for (const Sum lane : lanes) {
    sum += lane;
  }
  for (; i < size; ++i) {
    sum += term(i);
  }
  return sum;
}

template <typename Body>
void for_each_row(std::int64_t rows, std::int64_t size, Body&& body) {
  at::parallel_for(0, rows, std::max<std::int64_t>(1, kElementsATask / size),
                   [&](std::int64_t begin, std::int64_t end) {
                     for (std::int64_t row = begin; row < end; ++row) {
                       body(row);
                     }
                   });
}

template <typename T, typename Wide>
void forward(const T* input, const T* weight, T* output, Wide* scale, std::int64_t rows,
             std::int64_t size, double eps) {
  for_each_row(rows, size, [&](std::int64_t row) {
    const T* x = input + row * size;
    T* y = output + row * size;
    const Wide squares = lane_sum<Wide>(
        size, [&](std::int64_t i) { return static_cast<Wide>(x[i]) * static_cast<Wide>(x[i]); });
    const Wide r = 1 / std::sqrt(squares / static_cast<Wide>(size) + static_cast<Wide>(eps));
    scale[row] = r;
    for (std::int64_t i = 0; i < size; ++i) {
      y[i] = static_cast<T>(static_cast<Wide>(x[i]) * r) * weight[i];
    }
  });
}

// With n = x * r and h = gradient * weight: dx = r * (h - n * mean(h * n)).
template <typename T, typename Wide>
void input_gradient(const T* gradient, const T* input, const T* weight, const Wide* scale,
                    T* result, std::int64_t rows, std::int64_t size) {
  for_each_row(rows, size, [&](std::int64_t row) {
    const T* g = gradient + row * size;
    const T* x = input + row * size;
    T* dx = result + row * size;
    const Wide r = scale[row];
    const auto h = [&](std::int64_t i) {
      return static_cast<Wide>(g[i]) * static_cast<Wide>(weight[i]);
    };
    const Wide dot =
        lane_sum<Wide>(size, [&](std::int64_t i) { return h(i) * static_cast<Wide>(x[i]); });
    const Wide along = dot * r * r / static_cast<Wide>(size);
    for (std::int64_t i = 0; i < size; ++i) {
      dx[i] = static_cast<T>(r * (h(i) - static_cast<Wide>(x[i]) * along));
    }
  });
}

// dweight = sum of gradient * n over the rows. Tasks take columns, so that the sum does not depend
// on their number.
template <typename T, typename Wide>
void weight_gradient(const T* gradient, const T* input, const Wide* scale, T* result,
                     std::int64_t rows, std::int64_t size) {
  at::parallel_for(0, size,
                   std::max<std::int64_t>(kLanes, kElementsATask / std::max<std::int64_t>(1, rows)),
                   [&](std::int64_t begin, std::int64_t end) {
                     std::vector<Wide> sums(static_cast<std::size_t>(end - begin));
                     Wide* sum = sums.data();
                     for (std::int64_t row = 0; row < rows; ++row) {
                       const T* g = gradient + row * size + begin;
                       const T* x = input + row * size + begin;
                       const Wide r = scale[row];
                       for (std::int64_t i = 0; i < end - begin; ++i) {
                         sum[i] += static_cast<Wide>(g[i]) * (static_cast<Wide>(x[i]) * r);
                       }
                     }
                     for (std::int64_t i = 0; i < end - begin; ++i) {
                       result[begin + i] = static_cast<T>(sum[i]);
                     }
                   });
}

class RmsNorm : public torch::autograd::Function<RmsNorm> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& input,
                        const Tensor& weight, double eps) {
    const std::int64_t size = weight.numel();
    const std::int64_t rows = input.numel() / size;
    const Tensor scale =
        at::empty({rows}, input.options().dtype(at::toOpMathType(input.scalar_type())));
    Tensor output;
    if (input.is_meta()) {
      output = at::mul(input, weight);  // the same shape and memory
    } else {
      output = at::empty_like(input);
      AT_DISPATCH_FLOATING_TYPES_AND(at::kBFloat16, input.scalar_type(), "rms_norm", [&] {
        piper::forward(input.const_data_ptr<scalar_t>(), weight.const_data_ptr<scalar_t>(),
                       output.mutable_data_ptr<scalar_t>(),
                       scale.mutable_data_ptr<at::opmath_type<scalar_t>>(), rows, size, eps);
      });
    }
    context->save_for_backward({input, weight, scale});
    return output;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor gradient = gradients[0].contiguous();
    const Tensor &input = saved[0], &weight = saved[1], &scale = saved[2];
    const std::int64_t size = weight.numel();
    const std::int64_t rows = input.numel() / size;
    const bool wants_input = context->needs_input_grad(0);
    const bool wants_weight = context->needs_input_grad(1);
    Tensor d_input = wants_input ? at::empty_like(input) : Tensor();
    Tensor d_weight = wants_weight ? at::empty_like(weight) : Tensor();
    if (!input.is_meta()) {
      AT_DISPATCH_FLOATING_TYPES_AND(at::kBFloat16, input.scalar_type(), "rms_norm_backward", [&] {
        const auto* g = gradient.const_data_ptr<scalar_t>();
        const auto* x = input.const_data_ptr<scalar_t>();
        const auto* r = scale.const_data_ptr<at::opmath_type<scalar_t>>();
        if (wants_input) {
          input_gradient(g, x, weight.const_data_ptr<scalar_t>(), r,
                         d_input.mutable_data_ptr<scalar_t>(), rows, size);
        }
        if (wants_weight) {
          weight_gradient(g, x, r, d_weight.mutable_data_ptr<scalar_t>(), rows, size);
        }
      });
    }
    return {d_input, d_weight, Tensor()};
  }
};

}  // namespace

Tensor rms_norm(const Tensor& input, const Tensor& weight, double eps) {
  if (!input.is_cpu() && !input.is_meta()) {
    return at::rms_norm(input, weight.sizes(), weight, eps);
  }
  return RmsNorm::apply(input.contiguous(), weight, eps);
}

}  // namespace piper

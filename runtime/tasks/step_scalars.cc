#include "runtime/tasks/step_scalars.h"

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <limits>

namespace piper {

namespace {

constexpr std::int64_t kOfAStep = 7;  // elements, before those that buffers hold

}  // namespace

StepScalars::StepScalars(at::Device device)
    : all(at::zeros({kOfAStep + 3}, at::TensorOptions(at::kDouble).device(device))),
      lr_factor(all[0]),
      updates(all[1]),
      skip(all[2]),
      norm(all[3]),
      finite(all[4]),
      sums(all.narrow(0, 5, 2)),
      loss_sum(all[5]),
      tokens(all[6]),
      loss_sum_buffer(all[kOfAStep]),
      token_count_buffer(all[kOfAStep + 1]),
      grad_norm_buffer(all[kOfAStep + 2]) {}

void StepScalars::begin(double factor, std::int64_t count, bool nothing) const {
  all.narrow(0, 0, kOfAStep)
      .copy_(at::tensor(
          {factor, static_cast<double>(count), nothing ? 1.0 : 0.0, 0.0, 1.0, 0.0, 0.0}));
}

StepReport StepScalars::report(const at::Tensor& host_copy) {
  const auto number = host_copy.accessor<const double, 1>();
  const double tokens = number[6];
  return {tokens > 0 ? number[5] / tokens : std::numeric_limits<double>::quiet_NaN(), tokens,
          number[3], number[4] != 0};
}

}  // namespace piper

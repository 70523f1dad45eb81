#include "runtime/tasks/step_scalars.h"

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <limits>

namespace piper {

// The first seven are a step's; the last three are what the buffers loss_sum, token_count and
// grad_norm hold, in whichever plan runs (make_cells): both plans of a job have the same ones.
StepScalars::StepScalars(at::Device device)
    : all(at::zeros({10}, at::TensorOptions(at::kDouble).device(device))),
      lr_factor(all[0]),
      updates(all[1]),
      skip(all[2]),
      norm(all[3]),
      finite(all[4]),
      sums(all.narrow(0, 5, 2)),
      loss_sum(all[5]),
      tokens(all[6]) {}

void StepScalars::begin(double factor, std::int64_t count, bool nothing) const {
  all.narrow(0, 0, 7).copy_(
      at::tensor({factor, static_cast<double>(count), nothing ? 1.0 : 0.0, 0.0, 1.0, 0.0, 0.0}));
}

StepReport StepScalars::report(const at::Tensor& host_copy) {
  const auto number = host_copy.accessor<const double, 1>();
  const double tokens = number[6];
  return {tokens > 0 ? number[5] / tokens : std::numeric_limits<double>::quiet_NaN(), tokens,
          number[3], number[4] != 0};
}

}  // namespace piper

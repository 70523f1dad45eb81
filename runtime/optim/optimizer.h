// SGD and AdamW on flat tensors, as PyTorch's: used by the update task and by the single-device
// reference alike.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/config/config.h"

namespace piper {

struct OptimizerSettings {
  OptimizerName name = OptimizerName::adamw;
  double lr = 0, beta1 = 0, beta2 = 0, eps = 0, weight_decay = 0, momentum = 0;
};

// State of one flat group of elements: as the value, undefined where the optimizer has no such.
struct OptimizerState {
  at::Tensor first, second;  // momentum / exp_avg, exp_avg_sq
};

// That before the first update of `value`: zero.
OptimizerState make_state(const OptimizerSettings& settings, const at::Tensor& value);

// One update of `value` (fp32 or wider) by `gradient` * `scale`, in place. `step` counts from 1.
//   SGD:   g += weight_decay * w;  m = momentum * m + g;  w -= lr * m
//   AdamW: w *= 1 - lr * weight_decay; then Adam with bias correction (Loshchilov and Hutter, arXiv
//          1711.05101)
void update(const OptimizerSettings& settings, std::int64_t step, at::Tensor value,
            const at::Tensor& gradient, double scale, OptimizerState& state);

// What an update reads where the parameters are: one element each, in float64.
struct UpdateScalars {
  at::Tensor lr_factor;  // multiplies the settings' lr
  at::Tensor updates;    // the count of updates, this one among them
  at::Tensor norm;       // of all gradients, for clipping
  at::Tensor skip;       // other than 0: nothing changes
};

// The same, clipped to `max_norm` (0: not).
void update(OptimizerSettings settings, double max_norm, const UpdateScalars& scalars,
            at::Tensor value, const at::Tensor& gradient, OptimizerState& state);

// What clipping multiplies every gradient by, from the global norm: max_norm / (norm + 1e-6) where
// that is below 1, as PyTorch's clip_grad_norm_; 1 where max_norm is 0.
inline double clip_scale(double max_norm, double norm) {
  const double scale = max_norm / (norm + 1e-6);
  return max_norm > 0 && scale < 1 ? scale : 1;
}

// `group` as core's optimizer_group() numbers them.
OptimizerSettings settings_of(const Config& config, std::uint32_t group);

// The factor on the learning rate at `step` (from 1) of `steps`.
double lr_factor(const LrSchedulerConfig& config, std::int64_t step, std::int64_t steps);

}  // namespace piper

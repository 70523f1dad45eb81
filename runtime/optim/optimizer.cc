#include "runtime/optim/optimizer.h"

#include <ATen/ops/zeros_like.h>

#include <cmath>

#include "core/base/diagnostic.h"

namespace piper {
namespace {

// One pass over memory: with LibTorch's operators an AdamW update would take about ten.
template <typename T>
void sgd(const OptimizerSettings& settings, std::int64_t count, T* value, const T* gradient,
         T scale, T* momentum) {
  const T decay = static_cast<T>(settings.weight_decay);
  const T keep = static_cast<T>(settings.momentum);
  const T lr = static_cast<T>(settings.lr);
  if (momentum == nullptr) {
    for (std::int64_t i = 0; i < count; ++i) {
      value[i] -= lr * (gradient[i] * scale + decay * value[i]);
    }
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    momentum[i] = keep * momentum[i] + (gradient[i] * scale + decay * value[i]);
    value[i] -= lr * momentum[i];
  }
}

template <typename T>
void adamw(const OptimizerSettings& settings, std::int64_t step, std::int64_t count, T* value,
           const T* gradient, T scale, T* first, T* second) {
  const auto steps = static_cast<double>(step);
  const T shrink = static_cast<T>(1 - settings.lr * settings.weight_decay);
  const T beta1 = static_cast<T>(settings.beta1), rest1 = static_cast<T>(1 - settings.beta1);
  const T beta2 = static_cast<T>(settings.beta2), rest2 = static_cast<T>(1 - settings.beta2);
  const T stride = static_cast<T>(settings.lr / (1 - std::pow(settings.beta1, steps)));
  const T correction = static_cast<T>(1 / std::sqrt(1 - std::pow(settings.beta2, steps)));
  const T eps = static_cast<T>(settings.eps);
  for (std::int64_t i = 0; i < count; ++i) {
    const T g = gradient[i] * scale;
    const T m = beta1 * first[i] + rest1 * g;
    const T v = beta2 * second[i] + rest2 * g * g;
    first[i] = m;
    second[i] = v;
    value[i] = shrink * value[i] - stride * m / (std::sqrt(v) * correction + eps);
  }
}

template <typename T>
void update_as(const OptimizerSettings& settings, std::int64_t step, at::Tensor& value,
               const at::Tensor& gradient, double scale, OptimizerState& state) {
  const std::int64_t count = value.numel();
  if (settings.name == OptimizerName::sgd) {
    sgd<T>(settings, count, value.mutable_data_ptr<T>(), gradient.const_data_ptr<T>(),
           static_cast<T>(scale),
           state.first.defined() ? state.first.mutable_data_ptr<T>() : nullptr);
    return;
  }
  adamw<T>(settings, step, count, value.mutable_data_ptr<T>(), gradient.const_data_ptr<T>(),
           static_cast<T>(scale), state.first.mutable_data_ptr<T>(),
           state.second.mutable_data_ptr<T>());
}

double number(const at::Tensor& scalar) {
  return *scalar.const_data_ptr<double>();
}

}  // namespace

OptimizerState make_state(const OptimizerSettings& settings, const at::Tensor& value) {
  OptimizerState state;
  if (settings.name == OptimizerName::adamw || settings.momentum != 0) {
    state.first = at::zeros_like(value);
  }
  if (settings.name == OptimizerName::adamw) {
    state.second = at::zeros_like(value);
  }
  return state;
}

void update(const OptimizerSettings& settings, std::int64_t step, at::Tensor value,
            const at::Tensor& gradient, double scale, OptimizerState& state) {
  PIPER_CHECK(value.is_contiguous() && gradient.is_contiguous(), "an update of strided tensors");
  PIPER_CHECK(value.scalar_type() == gradient.scalar_type() && value.numel() == gradient.numel(),
              "an update of a value by a gradient of another type or size");
  if (value.scalar_type() == at::kDouble) {
    update_as<double>(settings, step, value, gradient, scale, state);
  } else {
    update_as<float>(settings, step, value, gradient, scale, state);
  }
  // A backward pass that still needs the old value fails, as after an operator of LibTorch.
  value.unsafeGetTensorImpl()->bump_version();
}

void update(OptimizerSettings settings, double max_norm, const UpdateScalars& scalars,
            at::Tensor value, const at::Tensor& gradient, OptimizerState& state) {
  if (number(scalars.skip) != 0) {
    return;
  }
  settings.lr *= number(scalars.lr_factor);
  update(settings, static_cast<std::int64_t>(number(scalars.updates)), std::move(value), gradient,
         clip_scale(max_norm, number(scalars.norm)), state);
}

OptimizerSettings settings_of(const Config& config, std::uint32_t group) {
  const OptimizerConfig& from = config.optimizer;
  OptimizerSettings settings{from.name, from.lr,           from.beta1,   from.beta2,
                             from.eps,  from.weight_decay, from.momentum};
  if (group < from.groups.size()) {
    settings.lr = from.groups[group].lr.value_or(settings.lr);
    settings.weight_decay = from.groups[group].weight_decay.value_or(settings.weight_decay);
  }
  return settings;
}

}  // namespace piper

#include "runtime/train/reference.h"

#include <ATen/ops/full.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>

#include "runtime/autograd/dropout.h"
#include "runtime/models/find_model.h"

namespace piper {
namespace {

bool is_narrow(DType dtype) {
  return gradient_dtype(dtype) != dtype;
}

}  // namespace

std::int64_t counted_labels(const at::Tensor& labels) {
  return labels.ne(kIgnoredLabel).sum().item<std::int64_t>();
}

Expected<std::unique_ptr<Reference>> Reference::create(const Config& config) {
  PIPER_ASSIGN(LiveModel model, build_model(config, /*measure=*/false));
  return std::unique_ptr<Reference>(new Reference(config, std::move(model)));
}

Reference::Reference(const Config& config, LiveModel model)
    : config_(config), model_(std::move(model)) {
  const std::vector<Parameter>& parameters = model_.graph.parameters;
  states_.resize(parameters.size());
  masters_.resize(parameters.size());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& parameter = parameters[i];
    set(static_cast<ParameterId>(i),
        initial_value(model_.inits[i], parameter.name, parameter.shape, to_torch(parameter.dtype),
                      config_.training.seed));
    if (!parameter.frozen) {
      states_[i] = make_state(settings_of(config_, optimizer_group(config_, parameter.name)),
                              masters_[i].view({-1}));
    }
  }
}

void Reference::set(ParameterId id, const at::Tensor& value) {
  const Parameter& parameter = model_.graph.parameter(id);
  at::Tensor& slot = *model_.parameters[index(id)];
  slot = value.detach().to(to_torch(parameter.dtype), /*non_blocking=*/false, /*copy=*/true);
  slot.requires_grad_(!parameter.frozen);
  masters_[index(id)] =
      is_narrow(parameter.dtype)
          ? value.detach().to(to_torch(gradient_dtype(parameter.dtype)), false, /*copy=*/true)
          : slot.detach();
}

at::Tensor Reference::forward(const Batch& batch, Rows rows) const {
  const ModelGraph& graph = model_.graph;
  std::vector<at::Tensor> values(graph.values.size());
  for (const auto& [id, tensor] : batch) {
    values[index(id)] = tensor.narrow(0, rows.begin, rows.count);
  }
  for (std::size_t r = 0; r < graph.regions.size(); ++r) {
    const Region& region = graph.regions[r];
    Tensors inputs;
    for (const ValueId id : region.inputs) {
      inputs.push_back(values[index(id)]);
    }
    const Tensors outputs = model_.regions[r](inputs);
    PIPER_CHECK(outputs.size() == region.outputs.size(), "results of region " + std::to_string(r));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      values[index(region.outputs[i])] = outputs[i];
    }
  }
  return values[index(graph.loss)];
}

Reference::Gradients Reference::gradients(std::int64_t step, const Batch& batch,
                                          const std::vector<Rows>& cuts) {
  const ModelGraph& graph = model_.graph;
  Gradients result;
  result.tokens = counted_labels(batch.at(graph.labels));
  result.tensors.resize(graph.parameters.size());
  for (const Rows& rows : cuts) {
    const InDropoutContext dropout({true, config_.training.seed, step, rows.begin});
    const at::Tensor loss = forward(batch, rows);
    result.loss += loss.item<double>();
    const double scale = result.tokens > 0 ? 1.0 / static_cast<double>(result.tokens) : 0;
    loss.backward(at::full({}, scale, loss.options()));
    for (std::size_t i = 0; i < graph.parameters.size(); ++i) {
      // Narrow gradients add up in float32, so each cut's is taken out; others add up where they
      // are.
      at::Tensor& gradient = model_.parameters[i]->mutable_grad();
      if (gradient.defined() && is_narrow(graph.parameters[i].dtype)) {
        at::Tensor wide = gradient.to(to_torch(gradient_dtype(graph.parameters[i].dtype)));
        result.tensors[i] = result.tensors[i].defined() ? result.tensors[i].add_(wide) : wide;
        gradient.reset();
      }
    }
  }
  result.loss /= static_cast<double>(result.tokens);  // NaN where no label counts

  double squares = 0;
  for (std::size_t i = 0; i < graph.parameters.size(); ++i) {
    const Parameter& parameter = graph.parameters[i];
    if (parameter.frozen) {
      continue;
    }
    at::Tensor& gradient = model_.parameters[i]->mutable_grad();
    if (gradient.defined()) {
      result.tensors[i] = std::move(gradient);
      gradient.reset();
    } else if (!result.tensors[i].defined()) {  // not used by the loss
      result.tensors[i] = at::zeros(parameter.shape, to_torch(gradient_dtype(parameter.dtype)));
    }
    squares +=
        std::pow(at::linalg_vector_norm(result.tensors[i], 2, c10::nullopt, false, at::kDouble)
                     .item<double>(),
                 2);
  }
  result.norm = std::sqrt(squares);
  return result;
}

double Reference::loss(const Batch& batch) {
  const c10::NoGradGuard no_grad;
  const InDropoutContext no_dropout({.training = false});
  const at::Tensor& labels = batch.at(model_.graph.labels);
  return forward(batch, {0, labels.size(0)}).item<double>() /
         static_cast<double>(counted_labels(labels));
}

void Reference::update(std::int64_t step, double lr_factor, double norm,
                       const std::vector<at::Tensor>& gradients) {
  const c10::NoGradGuard no_grad;
  const double scale = clip_scale(config_.training.max_norm, norm);
  for (std::size_t i = 0; i < masters_.size(); ++i) {
    const Parameter& parameter = model_.graph.parameters[i];
    if (parameter.frozen) {
      continue;
    }
    OptimizerSettings settings = settings_of(config_, optimizer_group(config_, parameter.name));
    settings.lr *= lr_factor;
    piper::update(settings, step, masters_[i].view({-1}), gradients[i].reshape({-1}), scale,
                  states_[i]);
    if (is_narrow(parameter.dtype)) {
      model_.parameters[i]->detach().copy_(masters_[i]);
    }
  }
}

}  // namespace piper

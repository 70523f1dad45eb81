// The single-device program: the same model, data and optimizer without plan, engine or
// communication. What every plan is compared with.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/config/config.h"
#include "core/plan/plan.h"
#include "runtime/exec/engine.h"
#include "runtime/model/build.h"
#include "runtime/optim/optimizer.h"

namespace piper {

class Reference {
 public:
  static Expected<std::unique_ptr<Reference>> create(const Config& config);

  struct Gradients {
    double loss = 0;  // sum of token losses / counted labels
    std::int64_t tokens = 0;
    double norm = 0;
    std::vector<at::Tensor> tensors;  // by ParameterId, float32 or wider; undefined where frozen
  };

  // Forward and backward of the rows in `cuts` at a step (from 1), one cut after the other, with
  // one count of labels for all: usually one cut, the whole batch. In bfloat16 rounding depends on
  // the cuts, so there they are those of the run.
  Gradients gradients(std::int64_t step, const Batch& batch, const std::vector<Rows>& cuts);

  // The forward pass alone, as an evaluation.
  double loss(const Batch& batch);

  // One optimizer step (from 1) with these gradients, clipped as the job says for a norm of `norm`.
  void update(std::int64_t step, double lr_factor, double norm,
              const std::vector<at::Tensor>& gradients);

  const ModelGraph& graph() const { return model_.graph; }
  // As the model reads it, and in float32 or wider.
  const at::Tensor& parameter(ParameterId id) const { return *model_.parameters[index(id)]; }
  const at::Tensor& master(ParameterId id) const { return masters_[index(id)]; }
  void set(ParameterId id, const at::Tensor& value);

 private:
  Reference(const Config& config, LiveModel model);

  // The sum of token losses of `rows` of the batch.
  at::Tensor forward(const Batch& batch, Rows rows) const;

  Config config_;
  LiveModel model_;
  std::vector<at::Tensor> masters_;  // by ParameterId; the parameter itself where it is wide enough
  std::vector<OptimizerState> states_;
};

// Labels that are counted.
std::int64_t counted_labels(const at::Tensor& labels);

}  // namespace piper

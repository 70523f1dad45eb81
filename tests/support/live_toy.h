// toy_model with tensors: what the runtime's tests run, and the same on one device in plain
// LibTorch.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "runtime/exec/engine.h"
#include "runtime/model/build.h"
#include "tests/support/toy_model.h"

namespace piper::test {

// Embedding, `layers` times h + tanh(h w'), a head with the sum of cross entropies. The graph is
// that of toy_model with its floating types replaced by `dtype`.
LiveModel live_toy(const ToyShape& shape, DType dtype);
ModelGraph toy_graph(const ToyShape& shape, DType dtype);

// Tokens and labels of the whole batch. Every row has another number of counted labels; the last
// row has none.
Batch toy_batch(const ModelGraph& model, std::int64_t rows, std::uint64_t seed);

// A job for live_toy: planned by core, SGD without momentum, lr 0.1.
struct ToyJob {
  std::uint32_t pp = 1, dp = 1, microbatches = 1;
  ToyShape shape = {};
  DType dtype = DType::float64;
  bool split_backward = false;
};
Expected<Job> toy_job(const ToyJob& options);

// Each rank's block of a batch.
StepInput feed(const Plan& plan, const Batch& batch, std::int64_t step = 1);

// What one device computes from the whole batch, by parameter.
struct OneDevice {
  double loss = 0, norm = 0;
  std::int64_t tokens = 0;
  std::vector<at::Tensor> gradients;
};
OneDevice one_device(const LiveModel& model, const std::vector<at::Tensor>& parameters,
                     const Batch& batch);

// max |a - b| / max |b|; 0 where both are 0 everywhere.
double relative_error(const at::Tensor& a, const at::Tensor& b);

}  // namespace piper::test

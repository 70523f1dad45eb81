// What the buffers of a plan contain on one rank. What a cell can hold is in its type, which the
// kind of its buffer chooses once and for all.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>

#include <memory>
#include <variant>
#include <vector>

#include "core/plan/plan.h"
#include "runtime/autograd/lent_storage.h"
#include "runtime/autograd/split_backward.h"
#include "runtime/model/build.h"
#include "runtime/tasks/host_fact.h"

namespace piper {

// input, activation, gradient, full_gradient: from the task that writes it to the one that frees it.
struct TensorCell {
  at::Tensor tensor;
  bool in_arena = false;  // its memory will be used again by another buffer

  void clear() { tensor.reset(); }
};

// gathered: a whole bucket while a chain uses it.
struct GatheredCell {
  at::Tensor tensor;
  LentStorage& parameters;  // the model's, to which computations lend the tensor

  void clear() {
    parameters.take_back(tensor);
    tensor.reset();
  }
};

// saved: what is between the forward and the backward of a chunk and micro-batch.
struct SavedCell {
  Tensors inputs;  // leaves, by position in Chunk::inputs; undefined: wants no gradient
  // Where the graph of each output begins, by position in Chunk::outputs; not valid: has none.
  std::vector<torch::autograd::Edge> outputs;
  at::Tensor loss;  // undefined: not this chunk's, or nothing to differentiate
  // Where BI stops beside inputs: lookups of parameters' rows, as of the embedding; and values that
  // regions read from which no gradient goes on, and whose own nobody wants.
  std::vector<torch::autograd::Edge> ends, unwanted;
  WeightGradients rest;  // between BI and BW

  void clear();
};

// loss_sum, token_count, grad_norm: one element in float64, as long as the job.
struct ScalarCell {
  at::Tensor number;
};

// Sizes of a step, for which the host waits: a HostFact. No kind of buffer has them so far.
// Nothing: parameters, their gradients and optimizer are in the rank's buckets.
using Cell = std::variant<std::monostate, TensorCell, GatheredCell, SavedCell, ScalarCell,
                          std::unique_ptr<HostFact>>;

struct Rank;

// By BufferId. The rank has its buckets; it outlives the cells.
std::vector<Cell> make_cells(const Program& program, const Rank& rank);

void clear(Cell& cell);

}  // namespace piper

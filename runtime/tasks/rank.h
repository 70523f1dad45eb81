// What a rank holds. Tasks keep pointers into it.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/plan/plan.h"
#include "runtime/autograd/lent_storage.h"
#include "runtime/data/batch.h"
#include "runtime/memory/account.h"
#include "runtime/model/build.h"
#include "runtime/optim/optimizer.h"
#include "runtime/tasks/parts.h"
#include "runtime/tasks/step_scalars.h"
#include "runtime/tasks/update_gate.h"

namespace torch::autograd {
struct Node;
}

namespace piper {

// The parameters of a bucket on one rank: flat tensors. Each has the whole bucket, padded, or the
// rank's part of it. The model's parameters are views of `value`, and their gradients of
// `gradient`, where these are whole; else of what a chain of uses has.
struct BucketState {
  const Bucket* bucket = nullptr;
  Share share;          // one rank: it has all
  at::Tensor value;     // in the bucket's dtype, kept between steps
  at::Tensor part;      // the rank's part of `value`
  at::Tensor master;    // of the part, fp32 or wider; the same tensor as `part` where that is
  at::Tensor gradient;  // of the part, in the master's dtype; undefined where frozen
  at::Tensor kept;      // a copy of the last reduced gradient, where asked for
  OptimizerState optimizer;
  std::unique_ptr<LentStorage> gathered, full_gradient;  // null: views of `value`, `gradient`
  std::vector<std::shared_ptr<torch::autograd::Node>>
      accumulators;  // kept, or each graph makes its own
};

struct Rank {
  std::uint32_t number = 0;
  LiveModel model;
  std::vector<std::unique_ptr<BucketState>> buckets;  // by BucketId; null: no home here
  Batch batch;
  StepScalars scalars;
  std::atomic<std::uint64_t> host_waits{0};  // for host facts, since the start
  std::shared_ptr<Account> account;

  BucketState& bucket(BucketId id) const;  // that has a home here
};

// For all ranks of an engine; changed between steps only, but for the gate.
struct Switches {
  bool keep_gradients = false;
  mutable UpdateGate gate;
};

}  // namespace piper

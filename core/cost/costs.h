// Durations of nodes and tasks under a cost model, in nanoseconds.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/cost/cost_model.h"
#include "core/ir/model_graph.h"
#include "core/plan/plan.h"

namespace piper {

// What durations depend on; the same of a DAG and of its plan.
struct CostScope {
  std::span<const Chunk> chunks;
  std::span<const Bucket> buckets;
  std::span<const Communicator> communicators;
  std::vector<std::span<const std::uint32_t>> ranks;  // by program
  std::uint32_t microbatches = 1;
  std::int64_t global_rows = 1;
  bool fold_recomputation = false;  // a backward takes what its recomputation does, too
};
CostScope scope_of(const Plan& plan);

// By default, those of the unit model.
class Costs {
 public:
  // A node or task: its op and what it works on. Unused ids are none.
  std::uint64_t of(Op op, ChunkId chunk, ValueId value, BucketId bucket, CommId comm) const;
  std::uint64_t of(const Task& task) const {
    return of(task.op, task.chunk, task.value, task.bucket, task.communicator);
  }

 private:
  friend class CostBuilder;
  struct Pass {
    std::uint64_t forward = 0, backward = 0, input = 0, weight = 0;
  };
  struct Channel {
    double latency = 0, per_byte = 0;  // nanoseconds
    std::uint32_t members = 2;
  };
  std::uint64_t message(std::int64_t bytes, CommId comm) const;
  std::uint64_t ring(std::int64_t bytes, CommId comm, double rounds) const;

  std::int64_t ring_bytes(Moves moves, ChunkId chunk, BucketId bucket) const;
  std::uint64_t alone(Op op, ChunkId chunk, ValueId value, BucketId bucket, CommId comm) const;

  bool unit_ = true;
  std::vector<bool> folded_;            // by ChunkId: its backward recomputes; empty: none does
  std::vector<Pass> chunks_;            // by ChunkId
  std::vector<std::uint64_t> updates_;  // by BucketId
  std::vector<Channel> channels_;       // by CommId
  std::vector<std::int64_t> value_bytes_, bucket_bytes_, gradient_bytes_, routed_bytes_;
};

// The unit model's forward.
inline constexpr std::uint64_t kUnit = traits(Op::forward).units;

// Micro-batches are taken to be as large as the largest. Error cost.missing: a measured file
// without a computation that the job has.
Expected<Costs> make_costs(const CostModel& model, const CostScope& scope, const ModelGraph& graph);

// What the forward and the backward of each region take together, for a micro-batch of `rows`. Of
// use to compare regions of one model: under the unit model, which knows no sizes, it is the
// floating-point operations of the forward. Error cost.missing.
Expected<std::vector<std::int64_t>> region_costs(const CostModel& model, const ModelGraph& graph,
                                                 std::int64_t rows);

}  // namespace piper

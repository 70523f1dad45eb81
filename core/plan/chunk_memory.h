// What a computation holds beyond the buffers that the plan gives it, from the op-level liveness of
// its regions (RegionPeaks).
//
//     forward of regions 0 1 2      | saved 0 | saved 1 | peak of 2 |   and values read later
//     backward                      | saved 0 | peak of 1 |             and gradients under way
//     backward_input                | saved 0 | peak of 1 | pending 2 | and gradients under way
//     backward_weight               | pending 0 | peak of 1 | pending 2 |
//
// The buffer `saved` has what the forward leaves. From the end of backward_input to that of
// backward_weight it holds what is pending instead, which can be more or less.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "core/ir/model_graph.h"
#include "core/plan/plan.h"

namespace piper {

struct TaskMemory {
  // At the task's worst moment, above what was live before it and what it allocates. Below zero
  // where not all of that is there yet, or no longer.
  std::int64_t running = 0;
  std::int64_t after = 0;  // what stays behind, beside its buffers; negative: what it takes away
};

// What the graph of a chunk keeps from forward (or recomputation) to backward, apart from values
// that have a buffer of their own: the chunk's inputs, and its outputs where the graph is not made
// again. A value that several regions keep counts once.
Affine saved_bytes(const ModelGraph& model, const Chunk& chunk);

class ChunkMemory {
 public:
  ChunkMemory(const Plan& plan, const ModelGraph& model);

  // On coordinate `coordinate` of the program. Nothing for tasks that are no computation on a
  // chunk.
  TaskMemory of(const Program& program, const Task& task, std::uint32_t coordinate);

 private:
  const Plan& plan_;
  const ModelGraph& model_;
  std::vector<bool> wants_gradient_;
  // By chunk, pass, rows, and how many gradients of other chunks arrive at each output.
  std::map<std::tuple<ChunkId, Op, std::int64_t, std::vector<std::uint32_t>>, TaskMemory> known_;
};

}  // namespace piper

// The orders of forwards and backwards whose backward is whole.
#pragma once

#include <cstdint>
#include <vector>

#include "row.h"

namespace interleaved1f1b {

using pipeline::Row;
using pipeline::Shape;

// Every forward, then every backward, both in order of micro-batches. (Huang et al. 2019, GPipe,
// section 2.2; the backward order is PyTorch's.) Holds M activations.
Row gpipe(const Shape& shape, std::uint32_t rank);

// Breadth first: every micro-batch through a stage before the next stage; the backwards in exactly
// the reverse order. (Lamy-Poirier 2023, Breadth-First Pipeline Parallelism, section 4; PyTorch's
// LoopedBFS.) Holds M activations of each stage.
Row looped_bfs(const Shape& shape, std::uint32_t rank);

// Just enough forwards that the last rank can start, then one forward and one backward in turn.
// (Narayanan et al. 2021, PipeDream-2BW, section 2.2: PipeDream-Flush.) Holds min(M, R - rank).
Row one_forward_one_backward(const Shape& shape, std::uint32_t rank);

// 1F1B over several stages a rank, which `group` micro-batches at a time pass one after the other.
// (Narayanan et al. 2021, Efficient Large-Scale Language Model Training on GPU Clusters, section
// 2.2.) `overlapped`: one more forward ahead, so that each forward is independent of the backward
// that follows it, and both overlap (Megatron-LM's overlap of expert communication).
Row interleaved(const Shape& shape, std::uint32_t rank, std::uint32_t group, bool overlapped);

}  // namespace interleaved1f1b

// How micro-batches take turns on a rank with several stages: in groups, each of which passes the
// rank's first stage, then its second, and so on.
//     2 stages, 4 micro-batches, groups of 2: 0F0 0F1 1F0 1F1 0F2 0F3 1F2 1F3
#pragma once

#include <cstdint>
#include <vector>

#include "row.h"

namespace pipeline {

// The stages of `rank` in the order in which groups of micro-batches visit them, in the loop
// layout: ascending for forwards, descending for backwards. The last group may be smaller.
class Walk {
 public:
  enum class Direction : std::uint8_t { up, down };
  Walk(const Shape& shape, std::uint32_t rank, std::uint32_t group, Direction direction);
  Lane& next() { return lanes_[visits_[at_++]]; }

 private:
  std::vector<Lane> lanes_;            // by local stage
  std::vector<std::uint32_t> visits_;  // local stages
  std::size_t at_ = 0;
};

// PyTorch's groups: as many equal ones as R fit into M, or one where M < R. 0: they are not equal
// (`M mod max(1, M div R)` is not 0). torch/distributed/pipelining/schedules.py.
std::uint32_t equal_groups(const Shape& shape);

// Megatron-LM's: R to M in a group, and a last one that is as large, or not smaller than R.
// megatron/core/pipeline_parallel/schedules.py.
bool is_group(const Shape& shape, std::uint32_t group);

}  // namespace pipeline

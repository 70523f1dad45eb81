#include "interleave.h"

#include <algorithm>

namespace pipeline {

Walk::Walk(const Shape& shape, std::uint32_t rank, std::uint32_t group, Direction direction) {
  for (std::uint32_t local = 0; local < shape.stages_per_rank; ++local) {
    lanes_.push_back({rank + local * shape.ranks});
  }
  for (std::uint32_t first = 0; first < shape.microbatches; first += group) {
    const std::uint32_t members = std::min(group, shape.microbatches - first);
    for (std::uint32_t i = 0; i < shape.stages_per_rank; ++i) {
      const std::uint32_t local = direction == Direction::up ? i : shape.stages_per_rank - 1 - i;
      visits_.insert(visits_.end(), members, local);
    }
  }
}

std::uint32_t equal_groups(const Shape& shape) {
  const std::uint32_t groups = std::max(1U, shape.microbatches / shape.ranks);
  return shape.microbatches % groups == 0 ? shape.microbatches / groups : 0;
}

bool is_group(const Shape& shape, std::uint32_t group) {
  const std::uint32_t last = shape.microbatches % std::max(1U, group);
  return shape.ranks <= group && group <= shape.microbatches && (last == 0 || last >= shape.ranks);
}

}  // namespace pipeline

// What the reducing tasks share.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/tasks/site.h"

namespace piper {

// What members of a collective compare: the kind of task and its bucket.
inline std::uint64_t tag_of(const Task& task) {
  return static_cast<std::uint64_t>(task.op) << 32 | index(task.bucket);
}

// Sums a few numbers, in float64, over the members, with the same bits for all. `group` null: the
// rank is the only one.
inline void sum_over(Collective* group, const Launch& launch, std::uint64_t tag,
                     const at::Tensor& numbers) {
  if (group != nullptr) {
    group->all_reduce(launch, {tag, DType::float64, numbers.mutable_data_ptr(),
                               static_cast<std::size_t>(numbers.numel())});
  }
}

}  // namespace piper

// What the reducing tasks share.
#pragma once

#include <array>
#include <cstdint>

#include "runtime/tasks/site.h"

namespace piper {

// What members of a collective compare: the kind of task and its bucket.
inline std::uint64_t tag_of(const Task& task) {
  return static_cast<std::uint64_t>(task.op) << 32 | index(task.bucket);
}

// Sums a few numbers over the members, with the same bits for all.
template <std::size_t n>
std::array<double, n> sum_over(Collective* group, const Launch& launch, std::uint64_t tag,
                               std::array<double, n> numbers) {
  if (group != nullptr) {
    group->all_reduce(launch, {tag, DType::float64, numbers.data(), n});
  }
  return numbers;
}

}  // namespace piper

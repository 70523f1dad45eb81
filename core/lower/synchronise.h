// Frees, offsets in the arena and waits, from the order of tasks and what they access; one program
// at a time, since waits never cross ranks.
//
// A buffer is freed by the first compute task that is after all its users on the timeline; what
// goes into the arena reuses bytes that are free on it. Both add waits only from
// earlier to later on a timeline that is a valid execution, so they can never make a deadlock. Then
// each task waits, on each other stream, for the last task it depends on, unless an earlier wait
// implies it; two periods are looked at, so that what one step leaves behind is waited for by the
// next (`previous`).
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/plan.h"

namespace piper {

// A program's tasks on the timeline, and what each must come after for other reasons than data
// (issue distances, user orders), by TaskId.
struct TaskTimes {
  std::vector<std::uint64_t> start, end;
  std::vector<std::uint32_t> first;  // first[t] .. first[t + 1] of `before`
  std::vector<TaskId> before;
};

// `plan` has the micro-batches and rows.
void synchronise(const Plan& plan, Program& program, const TaskTimes& times);

}  // namespace piper

// Turns the scheduled DAG into a plan: tasks in stream order, buffers, and what each task reads and
// writes. Waits, frees and slots come after it, from those alone (synchronise.h).
#pragma once

#include <vector>

#include "core/config/config.h"
#include "core/lower/dag.h"
#include "core/lower/list_schedule.h"
#include "core/plan/plan.h"

namespace piper {

// A program's tasks on the timeline, and edges that are not data (issue distances, user orders), by
// TaskId.
struct TaskTimes {
  std::vector<std::uint64_t> start, end;
  std::vector<std::uint32_t> first;  // predecessors of the same program: first[t] .. first[t + 1]
  std::vector<TaskId> before;
};

struct Assembled {
  Plan plan;
  std::vector<TaskTimes> times;  // by program
};

Assembled assemble(const Dag& dag, const ModelGraph& model, const Config& config,
                   const Timeline& timeline);

}  // namespace piper

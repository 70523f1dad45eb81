// Runs a plan in time: the same tasks, streams and waits that the runtime obeys, with durations in
// place of work.
//
// A task starts when the one before it on its stream, and those that it waits for, have ended; a
// send and its receive, or the launches of a collective, start together and hold all their streams.
// One period, from nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/base/spans.h"
#include "core/cost/costs.h"
#include "core/plan/plan.h"

namespace piper {

// By program and task. What the numbers count is the caller's: nanoseconds, or fractions of a unit.
using Durations = std::vector<std::vector<std::uint64_t>>;

Durations durations_of(const Plan& plan, const Costs& costs);

// A forward, a BI or a BW of a stage takes kUnitTicks, a B twice that, everything else nothing. A
// stage is what has one index of tag PP on a place; its pieces share its time.
inline constexpr std::uint64_t kUnitTicks = 27720;
Durations unit_durations(const Plan& plan, const ModelGraph& model);

struct SimulateOptions {
  // An overlap group is one block: it starts when all of it can, and its results leave at its end.
  bool atomic_pairs = false;
  // Transfers that enter or leave one place at the same time share its link evenly.
  bool contention = false;
};

struct Simulation {
  // The task that a task started right after: the last to end of those that it came after.
  struct Cause {
    std::uint32_t program = 0;
    TaskId task = none<TaskId>();  // none: nothing held it back
  };
  Spans times;
  std::vector<std::vector<Cause>> causes;  // by program and task
  std::uint64_t makespan = 0;
};

// The plan must be one that the verifier accepts. Error simulate.pair: an overlap group that
// communicates inside cannot be one block.
Expected<Simulation> simulate(const Plan& plan, const Durations& durations,
                              const SimulateOptions& options = {});

}  // namespace piper

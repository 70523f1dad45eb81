// What a run of a plan took, in the simulator's terms: the durations that it would need to predict
// that run.
#pragma once

#include <string>
#include <vector>

#include "core/cost/cost_model.h"
#include "core/ir/model_graph.h"
#include "core/plan/plan.h"
#include "core/simulate/simulate.h"

namespace piper {

// `recorded`, by rank and task: from when a task's waits were over to its end. Of each program its
// first rank is taken; a transfer starts when the last of its ends is there, so that no end counts
// its wait for the others.
Spans without_waits(const Plan& plan, const Spans& recorded);

Durations durations_of(const Spans& spans);

// A run as `analyse` takes it, of spans without waits: what held a task up is the last to end of
// those that it came after.
Simulation observed(const Plan& plan, const Spans& spans);

// Of each computation the median over its micro-batches, in nanoseconds. A pass that some chunks
// split and others do not has a cost of every kind: a B that was not run is BI + BW, a BI or BW
// half of B.
std::vector<MeasuredCost> measured_costs(const Plan& plan, const ModelGraph& model,
                                         const Durations& durations);

// As `[cost] file` reads it.
std::string to_toml(const std::vector<MeasuredCost>& costs);

}  // namespace piper

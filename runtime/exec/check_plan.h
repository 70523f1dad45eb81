// What this runtime can run. The planner plans and proves more.
#pragma once

#include "core/base/diagnostic.h"
#include "core/ir/model_graph.h"
#include "core/plan/plan.h"

namespace piper {

// Refuses plans with operations that have no task here: an error for each kind of operation and
// directive, with the first such node, at the directive. Also a weights' half of a backward that
// would read parameters which are sharded and gathered for the other half alone. Code:
// runtime.unsupported.
Status check_plan(const Plan& plan, const ModelGraph& model);

}  // namespace piper

// Proves a plan before anything starts. Each rule is a function with a stable code; see
// docs/verifier.md.
#pragma once

#include "core/base/diagnostic.h"
#include "core/directives/annotated.h"
#include "core/ir/model_graph.h"
#include "core/plan/plan.h"

namespace piper {

// The rules (codes): plan.form, plan.cycle, plan.missing_wait, plan.unmatched_send,
// plan.channel_order, plan.collective_order, plan.deadlock, plan.race, plan.release, plan.arena,
// plan.reduction, plan.update, plan.materialised. Looks at two consecutive periods. Deterministic:
// the same plan gives the same text.
Status verify(const Plan& plan, const ModelGraph& model);

// plan.order: the compute streams of a plan that `verify` has passed keep the orders that the job's
// directives ask for.
Status verify_order(const Plan& plan, const ModelGraph& model, const Annotated& annotated);

// plan.capacity: no rank can ever hold more than `capacity` bytes, training or evaluating. The
// error has the rank, the task and what the bytes are for; `where` is the place that asked for the
// limit. For plans that `verify` has passed.
Status check_capacity(const Plans& plans, const ModelGraph& model, std::int64_t capacity,
                      const Location& where);

}  // namespace piper

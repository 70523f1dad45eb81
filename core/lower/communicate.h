// Puts each place's compute in total order, then inserts communication, once: messages, gathers and
// reductions of chains, scalars; with the distance at which a receive or gather is posted as an
// edge (as a wait added later it can deadlock).
//     0F0 @0 -> 1F0 @1     ->     0F0 @0 -> send v3 mb 0 @0 = recv v3 mb 0 @1 -> 1F0 @1
// Runs after expand, and is the last phase that adds nodes.
#pragma once

#include "core/config/config.h"
#include "core/cost/cost_model.h"
#include "core/lower/dag.h"
#include "core/lower/expand.h"

namespace piper {

// A receive may be posted when all but `comm.receive_distance` computations before its first reader
// have ended. Errors: order.cycle, cost.missing.
Expected<Dag> communicate(Expanded expanded, const ModelGraph& model, const CostModel& cost_model,
                          const CommConfig& comm);

}  // namespace piper

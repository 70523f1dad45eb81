// One program of the plan: its tasks in stream order, its buffers, and what each task reads and
// writes. Waits, frees and offsets come after it, from those alone (synchronise.h).
#pragma once

#include "core/config/config.h"
#include "core/lower/dag.h"
#include "core/lower/list_schedule.h"
#include "core/plan/plan.h"

namespace piper {

Program build_program(const Dag& dag, const ModelGraph& model, const Config& config,
                      const Timeline& timeline, std::uint32_t program);

// The plan without programs.
Plan plan_tables(const Dag& dag, const ModelGraph& model);

}  // namespace piper

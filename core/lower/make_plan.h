// The scheduled DAG as a plan, program by program.
#pragma once

#include "core/config/config.h"
#include "core/lower/dag.h"
#include "core/lower/list_schedule.h"
#include "core/plan/plan.h"

namespace piper {

Plan make_plan(const Dag& dag, const ModelGraph& model, const Config& config,
               const Timeline& timeline);

// A rank has one arena for both plans, one after the other: what evaluation needs is there while
// the job trains, too.
void share_arenas(Plan& train, const Plan& evaluate);

}  // namespace piper

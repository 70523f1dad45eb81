// The whole planner: from a job and a captured model to two proven plans. Read pipeline.cc first.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <variant>

#include "core/base/diagnostic.h"
#include "core/config/config.h"
#include "core/directives/directive.h"
#include "core/ir/model_graph.h"
#include "core/plan/plan.h"

namespace piper {

struct Annotated;
struct Dag;
struct Expanded;

// What the planner has after a phase (`piper plan --after`): directives, then, for the plan for
// training and again for the one for evaluation, expand, communicate, schedule.
struct Phase {
  std::string_view name;
  const ModelGraph& model;  // with the tags that directives added
  std::variant<const Annotated*, const Expanded*, const Dag*, const Plan*> value;
};
std::string print(const Phase& phase);

// Called after every phase; what it is given lives until it returns.
using Trace = std::function<void(const Phase&)>;

// `proposals` are what the job's strategies said, in the order of the [[strategy]] tables.
Expected<Plans> plan(const Config& config, const ModelGraph& model,
                     const std::vector<Proposal>& proposals, const Trace& trace = {});

}  // namespace piper

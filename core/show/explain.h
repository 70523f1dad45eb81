// `piper plan --explain NODE`: what a task is, who made it, and why it is where it is.
#pragma once

#include <optional>
#include <string>

#include "core/base/diagnostic.h"
#include "core/directives/annotated.h"
#include "core/lower/dag.h"
#include "core/pipeline.h"

namespace piper {

// What the planner had on its way to one plan.
class PlanHistory {
 public:
  explicit PlanHistory(Plan::Kind kind) : kind_(kind) {}
  void see(const Phase& phase);  // as a Trace

  const Annotated& annotated() const { return *annotated_; }
  const Dag& dag() const { return *dag_; }  // with all its nodes: those of the plan
  bool complete() const { return annotated_ && dag_; }

 private:
  Plan::Kind kind_;
  std::optional<Annotated> annotated_;
  std::optional<Dag> dag_;
};

// `node`: a name (plan/node_name.h; spaces do not matter, and `@program` may be left out where one
// program alone has such a node) or a number, `n12` or `12`. Errors: show.unknown_node with the
// nearest name, show.ambiguous_node with all that are meant.
Expected<std::string> explain(const Plan& plan, const PlanHistory& history,
                              const std::string& node);

}  // namespace piper

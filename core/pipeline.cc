#include "core/pipeline.h"

#include <optional>
#include <utility>

#include "core/cost/costs.h"
#include "core/directives/annotate.h"
#include "core/lower/communicate.h"
#include "core/lower/dag_text.h"
#include "core/lower/expand.h"
#include "core/lower/fuse.h"
#include "core/lower/list_schedule.h"
#include "core/lower/make_plan.h"
#include "core/verify/verify.h"

namespace piper {
namespace {

// From what the directives say to one proven plan. Each line takes a value and gives the next.
Expected<Plan> lower(const Config& config, const Annotated& annotated, Plan::Kind kind,
                     const CostModel& cost_model, const Trace& trace) {
  const ModelGraph& model = annotated.model;
  PIPER_ASSIGN(Dag tables, fuse(annotated, config, kind));
  PIPER_ASSIGN(Expanded expanded, expand(std::move(tables), annotated));
  trace({"expand", model, &expanded});
  const std::vector<OrderLine> orders = expanded.orders;
  PIPER_ASSIGN(const Dag dag, communicate(std::move(expanded), model, cost_model, config.comm));
  trace({"communicate", model, &dag});
  PIPER_ASSIGN(const Costs costs, make_costs(cost_model, scope_of(dag), model));
  const std::optional<Timeline> timeline = list_schedule(dag, {}, costs);
  if (!timeline) {
    return fail(order_cycle(dag, orders, model));
  }
  Plan plan = make_plan(dag, model, config, *timeline);
  trace({"schedule", model, &plan});
  PIPER_TRY(verify(plan, model));
  PIPER_TRY(verify_order(plan, model, annotated));
  return plan;
}

}  // namespace

std::string print(const Phase& phase) {
  struct Printer {
    const ModelGraph& model;
    std::string operator()(const Annotated* annotated) const { return print(*annotated); }
    std::string operator()(const Expanded* expanded) const { return print(*expanded, model); }
    std::string operator()(const Dag* dag) const { return print(*dag, model); }
    std::string operator()(const Plan* plan) const { return print(*plan, model); }
  };
  return std::visit(Printer{phase.model}, phase.value);
}

Expected<Plans> plan(const Config& config, const ModelGraph& model,
                     const std::vector<Proposal>& proposals, const Trace& trace) {
  const Trace show = trace ? trace : [](const Phase&) {};
  PIPER_TRY(verify(model));
  PIPER_ASSIGN(const Annotated annotated, annotate(config, model, proposals));
  show({"directives", annotated.model, &annotated});
  PIPER_ASSIGN(const CostModel cost_model, load_cost_model(config));
  Plans plans;
  plans.remarks = annotated.remarks;
  PIPER_ASSIGN(plans.train, lower(config, annotated, Plan::Kind::train, cost_model, show));
  PIPER_ASSIGN(plans.evaluate, lower(config, annotated, Plan::Kind::evaluate, cost_model, show));
  share_arenas(plans.train, plans.evaluate);
  if (config.memory.capacity_bytes > 0) {
    PIPER_TRY(check_capacity(plans, model, config.memory.capacity_bytes,
                             config.where("memory.capacity")));
  }
  return plans;
}

}  // namespace piper

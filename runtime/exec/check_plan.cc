#include "runtime/exec/check_plan.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "runtime/exec/describe.h"

namespace piper {
namespace {

// As runtime/tasks/make_task.cc.
bool has_task(Op op) {
  switch (op) {
    case Op::input:
    case Op::forward:
    case Op::recompute:
    case Op::backward:
    case Op::backward_input:
    case Op::backward_weight:
    case Op::send:
    case Op::recv:
    case Op::all_reduce:
    case Op::reduce_scatter:
    case Op::all_gather:
    case Op::token_count:
    case Op::loss_report:
    case Op::grad_norm:
    case Op::update:
      return true;
    default:
      return false;
  }
}

// BI ends at the results of a region that reads nothing with a gradient (tokens), so BW of one with
// several parameters would read them: they are sharded, and gathered for BI alone.
const Region* needs_parameters(const Plan& plan, const ModelGraph& model, const Task& task) {
  if (task.op != Op::backward_weight) {
    return nullptr;
  }
  const Chunk& chunk = plan.chunks[index(task.chunk)];
  const bool sharded = std::any_of(chunk.buckets.begin(), chunk.buckets.end(), [&](BucketId id) {
    return plan.buckets[index(id)].kept_bytes() < plan.buckets[index(id)].bytes();
  });
  for (const RegionId id : chunk.regions) {
    const Region& region = model.region(id);
    const bool floating =
        std::any_of(region.inputs.begin(), region.inputs.end(),
                    [&](ValueId input) { return is_floating(model.value(input).dtype); });
    if (sharded && !floating && region.parameters.size() > 1) {
      return &region;
    }
  }
  return nullptr;
}

struct Found {
  const Task* first = nullptr;
  std::size_t count = 0;
};

Diagnostic refusal(const Plan& plan, const ModelGraph& model, std::uint32_t origin,
                   const Found& found) {
  const Provenance& from = plan.origins[origin];
  const std::string more =
      found.count > 1 ? " and " + std::to_string(found.count - 1) + " more" : "";
  return error("runtime.unsupported",
               from.plugin + ": this version of the runtime cannot run " +
                   describe(plan, model, *found.first) + " (node " +
                   std::to_string(index(found.first->node)) + more + ")",
               from.where);
}

}  // namespace

Status check_plan(const Plan& plan, const ModelGraph& model) {
  std::map<std::pair<Op, std::uint32_t>, Found> obstacles;  // by op and origin
  for (const Program& program : plan.programs) {
    for (const Task& task : program.tasks) {
      if (!has_task(task.op)) {
        Found& found = obstacles[{task.op, plan.origin_of_node[index(task.node)]}];
        found.first = found.first == nullptr ? &task : found.first;
        ++found.count;
      }
    }
  }
  Diagnostics refusals;
  for (const Program& program : plan.programs) {
    const auto bad = std::find_if(
        program.tasks.begin(), program.tasks.end(),
        [&](const Task& task) { return needs_parameters(plan, model, task) != nullptr; });
    if (bad != program.tasks.end()) {
      const Region& region = *needs_parameters(plan, model, *bad);
      const Provenance& from = plan.origins[plan.origin_of_node[index(bad->node)]];
      refusals.push_back(
          error("runtime.unsupported",
                from.plugin + ": this version of the runtime cannot run " +
                    describe(plan, model, *bad) + " with sharded parameters: expected regions " +
                    "that read tokens alone to have one parameter, got " +
                    std::to_string(region.parameters.size()) + " (" + to_string(region.where) + ")",
                from.where));
    }
  }
  for (const auto& [kind, found] : obstacles) {
    refusals.push_back(refusal(plan, model, kind.second, found));
  }
  return refusals.empty() ? Status{} : Status{fail(std::move(refusals))};
}

}  // namespace piper

#include "runtime/exec/check_plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "core/plan/accesses.h"
#include "runtime/tasks/describe.h"
#include "runtime/tasks/make_task.h"

namespace piper {
namespace {

// A parameter that a pass reads although it is sharded, and the plan does not gather it for that:
// a BW has the gradients alone.
struct Missing {
  RegionId region;
  ParameterId parameter;
};

std::optional<Missing> missing_parameter(const Plan& plan, const ModelGraph& model,
                                         const Task& task) {
  if (!runs_chunk(task.op) || touches(task.op, What::parameters)) {
    return std::nullopt;
  }
  const Chunk& chunk = plan.chunks[index(task.chunk)];
  for (const BucketId id : chunk.buckets) {
    const Bucket& bucket = plan.buckets[index(id)];
    if (bucket.kept_bytes() == bucket.bytes()) {
      continue;
    }
    for (const RegionId region : chunk.regions) {
      for (const ParameterId read : model.region(region).reread_parameters) {
        if (std::find(bucket.parameters.begin(), bucket.parameters.end(), read) !=
            bucket.parameters.end()) {
          return Missing{region, read};
        }
      }
    }
  }
  return std::nullopt;
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
    for (const Task& task : program.tasks) {
      const std::optional<Missing> missing = missing_parameter(plan, model, task);
      if (!missing) {
        continue;
      }
      const Provenance& from = plan.origins[plan.origin_of_node[index(task.node)]];
      refusals.push_back(
          error("runtime.unsupported",
                from.plugin + ": this version of the runtime cannot run " +
                    describe(plan, model, task) + " with sharded parameters: expected gradients " +
                    "of parameters that need no other parameter, got one that needs '" +
                    model.parameter(missing->parameter).name + "' (" +
                    to_string(model.region(missing->region).where) + ")",
                from.where));
      break;
    }
  }
  for (const auto& [kind, found] : obstacles) {
    refusals.push_back(refusal(plan, model, kind.second, found));
  }
  return refusals.empty() ? Status{} : Status{fail(std::move(refusals))};
}

}  // namespace piper

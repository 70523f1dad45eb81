#include "core/settings/plan_remarks.h"

#include <algorithm>
#include <string>

#include "core/config/schema.h"

namespace piper {
namespace {

bool receives(const Plan& plan) {
  return std::any_of(plan.programs.begin(), plan.programs.end(), [](const Program& program) {
    return std::any_of(program.tasks.begin(), program.tasks.end(),
                       [](const Task& task) { return traits(task.op).direction == Direction::in; });
  });
}

}  // namespace

Diagnostics plan_remarks(const Config& config, const Plans& plans) {
  Diagnostics remarks;
  const auto no_effect = [&](const std::string& path, const std::string& why) {
    if (is_given(config, path)) {
      remarks.push_back(
          warning("config.no_effect", path + " has no effect: " + why, config.where(path)));
    }
  };
  if (plans.train.microbatches != config.training.microbatches) {
    no_effect("training.microbatches",
              "the strategies split the rows into " + std::to_string(plans.train.microbatches));
  }
  if (!receives(plans.train) && !receives(plans.evaluate)) {
    no_effect("comm.receive_distance", "no rank receives from another");
  }
  return remarks;
}

}  // namespace piper

#include "core/settings/plan_remarks.h"

#include <gtest/gtest.h>

#include "tests/core/config/job.h"

namespace piper {
namespace {

// Two plans of one program; with a receive or without.
Plans plans_of(std::uint32_t microbatches, bool receives) {
  Plans plans;
  plans.train.microbatches = microbatches;
  Program program;
  Task task;
  task.op = receives ? Op::recv : Op::forward;
  program.tasks = {task};
  plans.train.programs = {program};
  return plans;
}

std::string said(const std::vector<std::string>& overrides, const Plans& plans) {
  const auto config = testing::load("[training]\nsteps = 3\n", overrides);
  return config ? to_string(plan_remarks(*config, plans)) : to_string(config.error());
}

TEST(PlanRemarks, TellThatNoRankReceives) {
  EXPECT_EQ(said({"comm.receive_distance=5"}, plans_of(1, false)),
            "--comm.receive_distance=5: warning: comm.receive_distance has no effect: no rank "
            "receives from another [config.no_effect]");
  EXPECT_EQ(said({"comm.receive_distance=5"}, plans_of(1, true)), "");
  EXPECT_EQ(said({}, plans_of(1, false)), "");
}

TEST(PlanRemarks, TellThatAStrategySplitsTheRowsItself) {
  EXPECT_EQ(said({"training.microbatches=2"}, plans_of(8, true)),
            "--training.microbatches=2: warning: training.microbatches has no effect: the "
            "strategies split the rows into 8 [config.no_effect]");
  EXPECT_EQ(said({"training.microbatches=2"}, plans_of(2, true)), "");
}

}  // namespace
}  // namespace piper

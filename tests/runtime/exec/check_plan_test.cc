#include "runtime/exec/check_plan.h"

#include <gtest/gtest.h>

#include "tests/support/sharded_toy.h"

namespace piper {
namespace {

std::string refusal(const test::ShardedShape& shape) {
  const test::ShardedJob job = test::sharded_job(shape);
  const auto plans = plan(job);
  const Status status = check_plan(plans.value().train, job.model);
  return status ? "" : to_string(status.error());
}

TEST(CheckPlan, AcceptsWhatTheRuntimeRuns) {
  EXPECT_EQ(refusal({.zero = 0, .split_backward = true}), "");
}

TEST(CheckPlan, AcceptsOverlapGroupsWhichAreOnlyAnOrder) {
  EXPECT_EQ(refusal({.microbatches = 4, .zero = 0, .overlap = true}), "");
}

TEST(CheckPlan, AcceptsShardingOverSeveralGroups) {
  EXPECT_EQ(refusal({.pp = 1, .dp = 4, .microbatches = 1, .zero = 3, .hybrid = 2}), "");
}

TEST(CheckPlan, RefusesExperts) {
  EXPECT_EQ(refusal({.pp = 1, .dp = 2, .microbatches = 1, .zero = 0, .ep = 2}),
            "job.toml:7:1: error: toy: this version of the runtime cannot run all_to_all (node 12 "
            "and 7 more) [runtime.unsupported]");
}

TEST(CheckPlan, RefusesExpertsOnOneDevice) {
  const std::string text = refusal({.pp = 1, .dp = 1, .microbatches = 1, .zero = 0, .ep = 1});

  EXPECT_NE(text.find("cannot run all_to_all"), std::string::npos) << text;
}

}  // namespace
}  // namespace piper

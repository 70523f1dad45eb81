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

TEST(CheckPlan, RefusesAWeightsHalfThatWouldReadShardedParameters) {
  test::ShardedJob job = test::sharded_job({.pp = 1, .microbatches = 1, .split_backward = true});
  job.model.regions[0].reread_parameters = job.model.regions[0].parameters;
  const auto plans = plan(job);
  ASSERT_TRUE(plans) << to_string(plans.error());

  const Status status = check_plan(plans->train, job.model);

  ASSERT_FALSE(status);
  EXPECT_EQ(to_string(status.error()),
            "job.toml:7:1: error: toy: this version of the runtime cannot run backward_weight of "
            "stage 0, micro-batch 0 with sharded parameters: expected gradients of parameters that "
            "need no other parameter, got one that needs 'embed.weight' (toy.cc:10) "
            "[runtime.unsupported]");
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

// What lowering refuses to shard, because ranks would hold different things.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/job_spec.h"

namespace piper {
namespace {

using test::JobSpec;
using test::SpecJob;

// Three layers on one place of two ranks, the middle one of experts.
JobSpec experts() {
  JobSpec spec;
  spec.dp = 2;
  spec.ep = 2;
  spec.layers = {{.reads = {0}}, {.reads = {1}, .weights = 4, .experts = true}, {.reads = {2}}};
  return spec;
}

std::string refusal(const SpecJob& job) {
  const Expected<Plans> plans = test::plan(job);
  return plans ? "accepted" : to_string(plans.error());
}

TEST(Shard, RefusesANumberOfExpertsThatTheGroupDoesNotDivide) {
  JobSpec spec = experts();
  spec.layers[1].weights = 3;

  EXPECT_EQ(refusal(make_job(spec)),
            "error: expected a number of expert parameters that the expert group's 2 ranks divide, "
            "got 3 [shard.parameters]");
}

TEST(Shard, RefusesExpertsOfDifferentShapes) {
  SpecJob job = make_job(experts());
  job.model.parameters[4].shape = {8, 4};

  EXPECT_EQ(refusal(job),
            "error: expected blocks of 2 parameters of the same shapes, but 'layers.1.2' differs "
            "from 'layers.1.0' [shard.parameters]");
}

// Two layers of experts in one bucket: a rank holds its block of each.
TEST(Shard, GivesARankTheSameBlockOfEveryLayer) {
  JobSpec spec = experts();
  spec.layers.insert(spec.layers.begin() + 2, {.reads = {2}, .weights = 2, .experts = true});
  spec.layers[3].reads = {3};

  const SpecJob job = make_job(spec);
  const Expected<Plans> plans = test::plan(job);

  ASSERT_TRUE(plans) << to_string(plans.error());
  std::string names;
  for (const Bucket& bucket : plans->train.buckets) {
    for (const ParameterId parameter : bucket.parameters) {
      names += bucket.expert_parts == 2 ? job.model.parameter(parameter).name + ' ' : "";
    }
  }
  EXPECT_EQ(names, "layers.1.0 layers.1.1 layers.2.0 layers.1.2 layers.1.3 layers.2.1 ");
}

TEST(Shard, RefusesExpertsThatReadExpertsOfAnotherPlace) {
  JobSpec spec = experts();
  spec.pp = 2;
  spec.layers[0].weights = 4;
  spec.layers[0].experts = true;
  spec.layers[1].stage = spec.layers[2].stage = spec.head_stage = 1;

  EXPECT_EQ(refusal(make_job(spec)),
            "job.toml:7:1: error: spec: shard: region 2 layer=1 EP=1 PP=1 (spec.cc:12) exchanges a "
            "value with another place; expected experts between regions of their own place "
            "[shard.edge]");
}

// A weight of two places, one of two ranks and one of a single one.
TEST(Replicate, RefusesToShardATiedParameterOverPlacesOfDifferentSize) {
  JobSpec spec;
  spec.dp = 3;
  spec.layers = {{.reads = {0}}, {.reads = {}, .tied = true, .dead = true}};
  SpecJob job = make_job(spec);
  ReplicateDirective sharded;
  sharded.shard_optimizer = true;
  job.proposal.directives.clear();
  const auto say = [&](auto what) {
    job.proposal.directives.push_back({std::move(what), job.proposal.from});
  };
  const auto regions = [](std::vector<std::uint32_t> list) {
    return Filter{{{"REGION", Condition::Kind::in_set, std::move(list)}}, {}};
  };
  say(PlaceDirective{regions({0, 1, 3}), {{0, 1}}, "compute"});
  say(PlaceDirective{regions({2}), {{2}}, "compute"});
  say(sharded);

  EXPECT_EQ(refusal(job),
            "job.toml:7:1: error: the places of region 0 (spec.cc:10) have groups of different "
            "size, over which it cannot be sharded [replicate.homes]");
}

}  // namespace
}  // namespace piper

// The directive `replicate`: what it changes, and a rejection for each thing it requires.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/core/directives/said.h"

namespace piper {
namespace {

using namespace test;

ReplicateDirective zero(int stage) {
  ReplicateDirective replicate;
  replicate.shard_optimizer = stage >= 1;
  replicate.shard_grads = stage >= 2;
  replicate.shard_params = stage >= 3;
  return replicate;
}

TEST(Replicate, SaysHowParametersAreShardedAndReduced) {
  ReplicateDirective replicate = zero(2);
  replicate.filter = layers(0, 0);
  replicate.reduce_stream = "dp";

  EXPECT_EQ(after({{replicate, {}}}, 1, 2),
            "microbatches 2\n"
            "region 0 @0,1 replicated zero 0 on reduce\n"
            "region 1 layer=0 @0,1 replicated zero 2 on dp\n"
            "region 2 layer=1 @0,1 replicated zero 0 on reduce\n"
            "region 3 @0,1 replicated zero 0 on reduce\n");
}

TEST(Replicate, RefusesAFamilyThatDoesNotPartitionThePlace) {
  ReplicateDirective replicate;
  replicate.filter = layers(0, 0);
  replicate.family = {{{{0}}}};

  EXPECT_EQ(refusal({{replicate, {}}}, 1, 2),
            "job.toml:9:1: error: zig: replicate {layer=0..0}: the groups do not partition the "
            "place of region 1 "
            "layer=0 (toy.cc:11) [replicate.family]\n"
            "note: placed by core");
}

TEST(Replicate, RefusesGroupsOfUnequalSizeOrThatShareRanks) {
  ReplicateDirective replicate;
  replicate.family = {{{{0}}, {{1, 2}}}};
  EXPECT_EQ(refusal({{replicate, {}}}, 1, 4),
            "job.toml:9:1: error: zig: replicate {}: expected groups of equal size, got one of 1 "
            "and one of 2 ranks "
            "[directive.family]");

  replicate.family = {{{{0, 1}}, {{1, 2}}}};
  EXPECT_EQ(refusal({{replicate, {}}}, 1, 4),
            "job.toml:9:1: error: zig: replicate {}: expected disjoint groups, got rank 1 in two "
            "[directive.family]");
}

TEST(Replicate, RefusesShardedGradientsWithAWholeOptimizer) {
  ReplicateDirective replicate = zero(2);
  replicate.shard_optimizer = false;
  EXPECT_EQ(refusal({{replicate, {}}}, 1, 2),
            "job.toml:9:1: error: zig: replicate {}: expected shard_optimizer with shard_grads "
            "[replicate.shard]");

  replicate = zero(3);
  replicate.shard_grads = false;
  EXPECT_EQ(refusal({{replicate, {}}}, 1, 2),
            "job.toml:9:1: error: zig: replicate {}: expected shard_grads with shard_params "
            "[replicate.shard]");
}

TEST(Replicate, RefusesASecondOne) {
  ReplicateDirective replicate;
  replicate.filter = layers(0, 0);
  EXPECT_EQ(refusal({{replicate, {}}, {replicate, {}}}, 1, 2),
            "job.toml:9:1: error: zig: region 1 layer=0 (toy.cc:11) is already replicated "
            "[replicate.conflict]\n"
            "job.toml:9:1: note: first replicated by zig");
}

TEST(Replicate, ChangesTheModelAsShown) {
  ReplicateDirective replicate = zero(3);
  replicate.filter = layers(0, 0);
  replicate.prefetch = 2;
  expect_before_and_after("replicate", {{replicate, {}}}, 1, 2);
}

}  // namespace
}  // namespace piper

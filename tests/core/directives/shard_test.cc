// The directive `shard`: what it changes, and a rejection for each thing it requires.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/core/directives/said.h"

namespace piper {
namespace {

using namespace test;

ShardDirective experts(std::vector<Ranks> groups) {
  return {layers(1, 1), {std::move(groups)}, "expert"};
}

TEST(Shard, PartitionsExpertsOverGroups) {
  const std::string text = after({{experts({{{0, 1}}, {{2, 3}}}), {}}}, 1, 4);

  EXPECT_NE(text.find("region 2 layer=1 @0,1,2,3 replicated zero 0 on reduce sharded 0\n"),
            std::string::npos)
      << text;
}

TEST(Shard, RefusesAFamilyThatDoesNotPartitionThePlace) {
  EXPECT_EQ(refusal({{experts({{{0, 1}}}), {}}}, 1, 4),
            "job.toml:9:1: error: zig: shard {layer=1..1}: the groups do not partition the place "
            "of region 2 layer=1 "
            "(toy.cc:12) [shard.family]\n"
            "note: placed by core");
}

TEST(Shard, RefusesASecondOne) {
  const Directive twice{experts({{{0, 1}}}), {}};
  EXPECT_EQ(
      refusal({twice, twice}, 1, 2),
      "job.toml:9:1: error: zig: region 2 layer=1 (toy.cc:12) is already sharded [shard.conflict]\n"
      "job.toml:9:1: note: first sharded by zig");
}

TEST(Shard, ChangesTheModelAsShown) {
  expect_before_and_after("shard", {{experts({{{0, 1}}, {{2, 3}}}), {}}}, 1, 4);
}

}  // namespace
}  // namespace piper

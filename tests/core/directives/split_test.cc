// The directive `split`: what it changes, and a rejection for each thing it requires.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/core/directives/said.h"

namespace piper {
namespace {

using namespace test;

TEST(Split, SetsTheNumberOfMicrobatches) {
  EXPECT_EQ(after({}, 1).substr(0, 15), "microbatches 2\n");
  EXPECT_EQ(after({{SplitDirective{{}, "MB", 3}, {}}}, 1).substr(0, 15), "microbatches 3\n");
}

TEST(Split, RefusesAnotherNumber) {
  EXPECT_EQ(
      refusal({{SplitDirective{{}, "MB", 3}, {}}, {SplitDirective{{}, "MB", 2}, {}}}),
      "job.toml:9:1: error: zig: split: expected the 3 micro-batches of zig, got 2 [split.twice]\n"
      "job.toml:9:1: note: first split by zig");
}

TEST(Split, RefusesMorePartsThanRows) {
  EXPECT_EQ(
      refusal({{SplitDirective{{}, "MB", 99}, {}}}),
      "job.toml:9:1: error: zig: split: expected at most 3 parts (the rows of a step), got 99 "
      "[split.rows]");
}

TEST(Split, RefusesPartOfTheModel) {
  EXPECT_EQ(refusal({{SplitDirective{layers(0, 0), "MB", 2}, {}}}),
            "job.toml:9:1: error: zig: split: expected a filter that selects the whole model, got "
            "{layer=0..0}, "
            "which selects 1 of 4 regions [split.part]");
}

TEST(Split, RefusesOtherDimensions) {
  EXPECT_EQ(refusal({{SplitDirective{{}, "seq", 2}, {}}}),
            "job.toml:9:1: error: zig: split: expected dim 'MB' (the rows of the batch), got 'seq' "
            "[split.dim]");
}

TEST(Split, ChangesTheModelAsShown) {
  expect_before_and_after("split", {{SplitDirective{{}, "MB", 2}, {}}}, 1);
}

}  // namespace
}  // namespace piper

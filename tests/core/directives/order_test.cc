// The directive `order`: what it changes, and a rejection for each thing it requires.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/core/directives/said.h"

namespace piper {
namespace {

using namespace test;

TEST(Order, RefusesFewerThanTwoGroups) {
  EXPECT_EQ(
      refusal({{OrderDirective{{{stage(0)}}}, {}}}, 1),
      "job.toml:9:1: error: zig: order: expected at least two groups of at least one filter, got 1 "
      "[order.groups]");
}

TEST(Order, RefusesAChainWhereNothingIsPlaced) {
  EXPECT_EQ(refusal({{OrderChainDirective{{{5}}, {}}, {}}}, 1),
            "job.toml:9:1: error: zig: order_chain: nothing is placed on exactly these ranks "
            "[order.chain]");
}

TEST(Order, ChangesTheModelAsShown) {
  Filter backward = stage(0);
  backward.passes = {Pass::backward};
  Filter forward = stage(0);
  forward.passes = {Pass::forward};
  expect_before_and_after(
      "order", {kTag0, kTag1, kPlace0, kPlace1, {OrderDirective{{{forward}, {backward}}}, {}}});
  expect_before_and_after(
      "order_chain",
      {kTag0,
       kTag1,
       kPlace0,
       kPlace1,
       {OrderChainDirective{{{0}}, {{0, 0, Pass::forward}, {0, 1, Pass::forward}}}, {}}});
}

}  // namespace
}  // namespace piper

// The directive `split_backward`: what it changes, and a rejection for each thing it requires.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/core/directives/said.h"

namespace piper {
namespace {

using namespace test;

TEST(SplitBackward, MarksRegions) {
  EXPECT_EQ(after({{SplitBackwardDirective{layers(1, 1)}, {}}}, 1),
            "microbatches 2\n"
            "region 0 @0 replicated zero 0 on reduce\n"
            "region 1 layer=0 @0 replicated zero 0 on reduce\n"
            "region 2 layer=1 @0 replicated zero 0 on reduce split_backward\n"
            "region 3 @0 replicated zero 0 on reduce\n");
}

TEST(SplitBackward, ChangesTheModelAsShown) {
  expect_before_and_after("split_backward", {{SplitBackwardDirective{layers(1, 1)}, {}}}, 1);
}

TEST(SplitBackward, SplitsOnlyTheMicrobatchesThatTheFilterNames) {
  Filter second = layers(1, 1);
  second.conditions.push_back({"MB", Condition::Kind::equals, {1}});

  EXPECT_NE(after({{SplitBackwardDirective{second}, {}}}, 1)
                .find("region 2 layer=1 @0 replicated zero 0 on reduce split_backward MB 1\n"),
            std::string::npos);
}

TEST(SplitBackward, RefusesMicrobatchesThatThereAreNot) {
  Filter third = layers(1, 1);
  third.conditions.push_back({"MB", Condition::Kind::equals, {2}});

  EXPECT_EQ(refusal({{SplitBackwardDirective{third}, {}}}, 1),
            "job.toml:9:1: error: zig: split_backward {layer=1..1, MB=2} matches nothing "
            "[directive.no_match]");
}

}  // namespace
}  // namespace piper

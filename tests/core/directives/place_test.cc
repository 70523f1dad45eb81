// The directive `place`: what it changes, and a rejection for each thing it requires.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/core/directives/said.h"

namespace piper {
namespace {

using namespace test;

TEST(Place, PutsRegionsOnRanks) {
  EXPECT_EQ(after({kTag0, kTag1, kPlace0, kPlace1}),
            "microbatches 2\n"
            "region 0 PP=0 @0 replicated zero 0 on reduce\n"
            "region 1 layer=0 PP=0 @0 replicated zero 0 on reduce\n"
            "region 2 layer=1 PP=1 @1 replicated zero 0 on reduce\n"
            "region 3 PP=1 @1 replicated zero 0 on reduce\n");
}

TEST(Place, PutsMicrobatchesOnDifferentRanks) {
  const auto half = [](std::uint32_t m, std::uint32_t rank) {
    return Directive{
        PlaceDirective{{{{"MB", Condition::Kind::equals, {m}}}, {}}, {{rank}}, "compute"}, {}};
  };

  EXPECT_EQ(after({half(1, 0), half(0, 1)}).substr(0, 72),
            "microbatches 2\n"
            "region 0 @1 MB 0 @0 MB 1 replicated zero 0 on reduce\n"
            "regi");
}

TEST(Place, RefusesToLeaveMicrobatchesOut) {
  EXPECT_EQ(
      refusal(
          {{PlaceDirective{{{{"MB", Condition::Kind::equals, {0}}}, {}}, {{0}}, "compute"}, {}}}),
      "job.toml:9:1: error: zig: region 0 (toy.cc:10) is placed for 1 of 2 micro-batches "
      "[place.missing]");
}

TEST(Place, RefusesASecondPlaceAndPointsAtTheFirst) {
  EXPECT_EQ(refusal({kTag0, kPlace0, {PlaceDirective{stage(0), {{1}}, "compute"}, {}}}),
            "job.toml:9:1: error: zig: region 0 PP=0 (toy.cc:10) is already placed; cannot place "
            "it again "
            "[place.conflict]\n"
            "job.toml:9:1: note: first placed by zig");
}

TEST(Place, RefusesRanksOutsideTheWorldAndTwice) {
  EXPECT_EQ(refusal({kTag0, {PlaceDirective{stage(0), {{2}}, "compute"}, {}}}),
            "job.toml:9:1: error: zig: place {PP=0}: expected ranks below the world size 2, got 2 "
            "[directive.ranks]");
  EXPECT_EQ(refusal({kTag0, {PlaceDirective{stage(0), {{1, 1}}, "compute"}, {}}}),
            "job.toml:9:1: error: zig: place {PP=0}: rank 1 is there twice [directive.ranks]");
  EXPECT_EQ(refusal({kTag0, {PlaceDirective{stage(0), {}, "compute"}, {}}}),
            "job.toml:9:1: error: zig: place {PP=0}: expected at least one rank, got none "
            "[directive.ranks]");
}

TEST(Place, RefusesToLeaveRegionsOut) {
  EXPECT_EQ(
      refusal({kTag0, kPlace0}),
      "job.toml:9:1: error: zig: region 2 layer=1 (toy.cc:12) is placed nowhere, but other regions "
      "are [place.missing]");
}

TEST(Place, RefusesGroupsThatOverlap) {
  EXPECT_EQ(refusal({kTag0, kTag1, kPlace0, {PlaceDirective{stage(1), {{0, 1}}, "compute"}, {}}}),
            "job.toml:9:1: error: region 2 layer=1 PP=1 (toy.cc:12) and region 0 PP=0 (toy.cc:10) "
            "are placed on "
            "groups that share rank 0; expected equal or disjoint groups [place.overlap]\n"
            "job.toml:9:1: note: the other place");
}

TEST(Place, RefusesAnotherComputeStream) {
  EXPECT_EQ(refusal({kTag0, {PlaceDirective{stage(0), {{0}}, "pp"}, {}}}),
            "job.toml:9:1: error: zig: place {PP=0}: expected stream 'compute' (one compute stream "
            "a rank), got "
            "'pp' [place.stream]");
}

TEST(Place, ChangesTheModelAsShown) {
  // Member 0 of the place is rank 1.
  expect_before_and_after("place", {{PlaceDirective{{}, {{1, 0}}, "compute"}, {}}}, 1, 2);
}

}  // namespace
}  // namespace piper

// The directive `tag`: what it changes, and a rejection for each thing it requires.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/core/directives/said.h"

namespace piper {
namespace {

using namespace test;

TEST(Tag, NamesRegions) {
  EXPECT_EQ(after({{TagDirective{layers(0, 0), "PP", 3}, {}}}, 1),
            "microbatches 2\n"
            "region 0 @0 replicated zero 0 on reduce\n"
            "region 1 layer=0 PP=3 @0 replicated zero 0 on reduce\n"
            "region 2 layer=1 @0 replicated zero 0 on reduce\n"
            "region 3 @0 replicated zero 0 on reduce\n");
}

TagDirective partition(Partition::By by, std::uint32_t parts,
                       std::vector<std::uint32_t> boundaries = {}) {
  return {{}, "PP", 0, Partition{by, "layer", parts, std::move(boundaries)}};
}

std::vector<std::uint32_t> parts_of(const ModelGraph& model, TagDirective tag) {
  const Expected<Annotated> dag =
      annotate(toy_config(1, 1, 1), model, {says({{std::move(tag), {}}})});
  std::vector<std::uint32_t> parts;
  for (const Region& region : dag->model.regions) {
    parts.push_back(*region.tag(*dag->model.find_tag("PP")));
  }
  return parts;
}

TEST(Tag, CutsByCount) {
  EXPECT_EQ(parts_of(toy_model({.layers = 4}), partition(Partition::By::count, 2)),
            (std::vector<std::uint32_t>{0, 0, 0, 1, 1, 1}));
}

TEST(Tag, CutsAtBoundaries) {
  EXPECT_EQ(parts_of(toy_model({.layers = 4}), partition(Partition::By::boundaries, 0, {1, 3})),
            (std::vector<std::uint32_t>{0, 0, 1, 1, 2, 2}));
}

TEST(Tag, BalancesByFlops) {
  ModelGraph model = toy_model({.layers = 4});
  model.regions[4].flops.per_row *= 6;  // layer 3

  EXPECT_EQ(parts_of(model, partition(Partition::By::flops, 2)),
            (std::vector<std::uint32_t>{0, 0, 0, 0, 1, 1}));
}

TEST(Tag, SaysHowUnevenThePartsAre) {
  const Expected<Annotated> dag = annotated({{partition(Partition::By::flops, 2), {}}}, 1);

  ASSERT_TRUE(dag);
  EXPECT_EQ(dag->remarks,
            (std::vector<std::string>{"tag PP: 2 parts, the largest 1.000 times the mean"}));
}

TEST(Tag, RefusesMorePartsThanUnits) {
  EXPECT_EQ(refusal({{partition(Partition::By::flops, 3), {}}}, 1),
            "job.toml:9:1: error: zig: tag PP: expected 1 to 2 parts (the model has 2 units), got "
            "3 [tag.parts]");
}

TEST(Tag, RefusesBoundariesOutOfOrder) {
  EXPECT_EQ(refusal({{partition(Partition::By::boundaries, 0, {1, 1}), {}}}, 1),
            "job.toml:9:1: error: zig: tag PP: expected ascending boundaries from 1 to 1, got 1 "
            "[tag.boundaries]");
}

TEST(Tag, RefusesASecondIndex) {
  EXPECT_EQ(
      refusal({kTag0, {TagDirective{regions(0, 0), "PP", 1}, {}}}),
      "job.toml:9:1: error: zig: region 0 PP=0 (toy.cc:10) already has PP=0; cannot give it PP=1 "
      "[tag.conflict]\njob.toml:9:1: note: first given by zig");
}

TEST(Tag, RefusesReservedNames) {
  EXPECT_EQ(
      refusal({{TagDirective{regions(0, 0), "MB", 1}, {}}}),
      "job.toml:9:1: error: zig: expected a tag name other than '', 'MB', 'PASS' and 'REGION', "
      "got 'MB' [tag.name]");
  EXPECT_EQ(refusal({{TagDirective{regions(0, 0), "pp stage", 1}, {}}}),
            "job.toml:9:1: error: zig: expected a tag name of letters, digits and '_', got "
            "'pp stage' [tag.name]");
}

TEST(Tag, ChangesTheModelAsShown) {
  expect_before_and_after("tag", {{TagDirective{layers(0, 0), "EP", 3}, {}}}, 1);
}

}  // namespace
}  // namespace piper

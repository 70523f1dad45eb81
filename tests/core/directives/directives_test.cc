// Each directive: what it changes (before -> after), and one rejection for each thing it requires.
#include <gtest/gtest.h>

#include <string>

#include "core/directives/annotate.h"
#include "tests/support/toy_model.h"

namespace piper {
namespace {

using test::toy_config;
using test::toy_model;

const Provenance kFrom{"zig", {"job.toml", 9, 1}};

Filter layers(std::uint32_t first, std::uint32_t last) {
  return {{{"layer", Condition::Kind::in_range, {first, last}}}, {}};
}
Filter stage(std::uint32_t s) {
  return {{{"PP", Condition::Kind::equals, {s}}}, {}};
}
Filter regions(std::uint32_t first, std::uint32_t last) {
  return {{{"REGION", Condition::Kind::in_range, {first, last}}}, {}};
}

Proposal says(std::vector<Directive> directives) {
  Proposal proposal;
  proposal.from = kFrom;
  proposal.claims = {{Claim::Kind::axis, "pp", kFrom}};
  proposal.directives = std::move(directives);
  for (Directive& directive : proposal.directives) {
    directive.from = kFrom;
  }
  return proposal;
}

Expected<Annotated> annotated(std::vector<Directive> directives, std::uint32_t pp = 2,
                              std::uint32_t dp = 1) {
  return annotate(toy_config(pp, dp, 2), toy_model({.layers = 2}), {says(std::move(directives))});
}

std::string after(std::vector<Directive> directives, std::uint32_t pp = 2, std::uint32_t dp = 1) {
  const Expected<Annotated> dag = annotated(std::move(directives), pp, dp);
  return dag ? print(*dag) : to_string(dag.error());
}

std::string refusal(std::vector<Directive> directives, std::uint32_t pp = 2, std::uint32_t dp = 1) {
  const Expected<Annotated> dag = annotated(std::move(directives), pp, dp);
  return dag ? "accepted" : to_string(dag.error());
}

const Directive kTag0{TagDirective{regions(0, 1), "PP", 0}, {}};
const Directive kTag1{TagDirective{regions(2, 3), "PP", 1}, {}};
const Directive kPlace0{PlaceDirective{stage(0), {{0}}, "compute"}, {}};
const Directive kPlace1{PlaceDirective{stage(1), {{1}}, "compute"}, {}};

TEST(Annotate, RunsEverythingEverywhereWhenNobodySaysAnything) {
  const Expected<Annotated> dag = annotate(toy_config(1, 2, 2), toy_model({.layers = 1}), {});

  ASSERT_TRUE(dag);
  EXPECT_EQ(print(*dag),
            "microbatches 2\n"
            "region 0 @0,1 replicated zero 0 on reduce\n"
            "region 1 layer=0 @0,1 replicated zero 0 on reduce\n"
            "region 2 @0,1 replicated zero 0 on reduce\n");
}

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

TEST(Filters, RefuseUnknownTagsWithTheNearest) {
  EXPECT_EQ(refusal({{TagDirective{{{{"leyer", Condition::Kind::present, {}}}, {}}, "PP", 0}, {}}}),
            "job.toml:9:1: error: zig: tag {leyer=*}: the model has no tag 'leyer' (did you mean "
            "'layer'?) "
            "[directive.unknown_tag]");
}

TEST(Filters, RefuseToMatchNothing) {
  EXPECT_EQ(refusal({{TagDirective{layers(7, 9), "PP", 0}, {}}}),
            "job.toml:9:1: error: zig: tag {layer=7..9} matches nothing [directive.no_match]");
}

TEST(Filters, RefusePassesWhereRegionsAreSelected) {
  EXPECT_EQ(refusal({{PlaceDirective{{{}, {Pass::forward}}, {{0}}, "compute"}, {}}}),
            "job.toml:9:1: error: zig: place {PASS=F}: selects regions with all their passes; PASS "
            "is not allowed "
            "here [directive.filter]");
}

TEST(Filters, SelectByEqualitySetRangePresenceAndAbsence) {
  const auto count = [](Condition condition) {
    const Expected<Annotated> dag = annotate(toy_config(1, 1, 1), toy_model({.layers = 4}), {});
    return select_regions(*dag, {{std::move(condition)}, {}}, kFrom, "tag")->size();
  };

  EXPECT_EQ(count({"layer", Condition::Kind::equals, {2}}), 1U);
  EXPECT_EQ(count({"layer", Condition::Kind::in_set, {0, 3, 9}}), 2U);
  EXPECT_EQ(count({"layer", Condition::Kind::in_range, {1, 3}}), 3U);
  EXPECT_EQ(count({"layer", Condition::Kind::present, {}}), 4U);
  EXPECT_EQ(count({"layer", Condition::Kind::absent, {}}), 2U);
}

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

TEST(SplitBackward, MarksRegions) {
  EXPECT_EQ(after({{SplitBackwardDirective{layers(1, 1)}, {}}}, 1),
            "microbatches 2\n"
            "region 0 @0 replicated zero 0 on reduce\n"
            "region 1 layer=0 @0 replicated zero 0 on reduce\n"
            "region 2 layer=1 @0 replicated zero 0 on reduce split_backward\n"
            "region 3 @0 replicated zero 0 on reduce\n");
}

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
      "toy.cc:10: error: region 0 (toy.cc:10) is placed for 1 of 2 micro-batches [place.missing]");
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
      "toy.cc:12: error: region 2 layer=1 (toy.cc:12) is placed nowhere, but other regions are "
      "[place.missing]");
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

TEST(Claims, RefuseTwoOwnersAndShowBothLines) {
  Proposal first = says({}), second = says({});
  second.from = {"zag", {"job.toml", 14, 1}};
  second.claims = {{Claim::Kind::axis, "pp", second.from}};

  const Expected<Annotated> dag = annotate(toy_config(2, 1, 1), toy_model(), {first, second});

  ASSERT_FALSE(dag);
  EXPECT_EQ(to_string(dag.error()),
            "job.toml:14:1: error: zag and zig both claim mesh axis 'pp' [claim.conflict]\n"
            "job.toml:9:1: note: first claimed by zig");
}

TEST(Claims, RefuseAnAxisThatNobodyUses) {
  const Expected<Annotated> dag = annotate(toy_config(2, 1, 1), toy_model(), {});

  ASSERT_FALSE(dag);
  EXPECT_EQ(to_string(dag.error()),
            "job.toml: error: mesh axis 'pp' has size 2 but no [[strategy]] or [[directive]] uses "
            "it [claim.axis]");
}

}  // namespace
}  // namespace piper

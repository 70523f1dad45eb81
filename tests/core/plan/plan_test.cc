// Rows, seats and names.
#include "core/plan/plan.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "core/plan/microbatch.h"
#include "tests/support/pipeline_plan.h"

namespace piper {
namespace {

TEST(CutRows, GivesTheRemainderToEarlierParts) {
  const Rows whole{0, 8};

  EXPECT_EQ(cut_rows(whole, 3, 0).count, 3);
  EXPECT_EQ(cut_rows(whole, 3, 1).count, 3);
  EXPECT_EQ(cut_rows(whole, 3, 2).count, 2);
  EXPECT_EQ(cut_rows(whole, 3, 2).begin, 6);
}

TEST(CutRows, CoversTheWholeWithoutGaps) {
  for (std::int64_t count = 0; count < 40; ++count) {
    for (std::uint32_t parts = 1; parts < 9; ++parts) {
      std::int64_t next = 100;
      for (std::uint32_t part = 0; part < parts; ++part) {
        const Rows rows = cut_rows({100, count}, parts, part);
        EXPECT_EQ(rows.begin, next);
        next += rows.count;
      }
      EXPECT_EQ(next, 100 + count);
    }
  }
}

TEST(PerMicrobatch, StopsAtATaskThatHasAChainOrNothing) {
  Plan plan;
  plan.microbatches = 2;
  PerMicrobatch<int> counts(plan);
  Task task;
  task.microbatch = 1;

  counts[task] = 3;

  EXPECT_EQ(counts[task], 3);
  task.op = Op::all_gather;
  EXPECT_DEATH(counts[task], "all_gather 1 of 2 micro-batches");
  task.op = Op::update;
  EXPECT_DEATH(counts[task], "update 1 of 2 micro-batches");
  task.op = Op::forward;
  task.microbatch = 2;
  EXPECT_DEATH(counts[task], "forward 2 of 2 micro-batches");
}

TEST(RowsOf, CutsTheBatchByRankThenByMicrobatch) {
  const auto made = test::pipeline({.stages = 1, .replicas = 2, .microbatches = 3});
  Plan plan = made.plan;
  plan.global_rows = 15;  // 8 and 7; 3, 3, 2 and 3, 2, 2

  EXPECT_EQ(rows_of(plan, plan.programs[0], 0, 2).begin, 6);
  EXPECT_EQ(rows_of(plan, plan.programs[0], 0, 2).count, 2);
  EXPECT_EQ(rows_of(plan, plan.programs[0], 1, 0).begin, 8);
  EXPECT_EQ(rows_of(plan, plan.programs[0], 1, 0).count, 3);
  EXPECT_EQ(rows_of(plan, plan.programs[0], 1, 2).begin, 13);
}

TEST(Plan, SeatsEveryRank) {
  const auto made = test::pipeline({.stages = 3, .replicas = 2});

  EXPECT_EQ(made.plan.seat(0).program, 0u);
  EXPECT_EQ(made.plan.seat(5).program, 2u);
  EXPECT_EQ(made.plan.seat(5).coordinate, 1u);
}

TEST(Op, HasANameOfItsOwn) {
  std::set<std::string_view> names, short_names;
  for (const OpTraits& of : kOpTraits) {
    names.insert(to_string(of.op));
    short_names.insert(short_name(of.op));
  }

  EXPECT_EQ(names.size(), kOps);
  EXPECT_EQ(short_names.size(), kOps);
  EXPECT_EQ(to_string(Op::backward_weight), "backward_weight");
  EXPECT_EQ(to_string(Op::input), "input");
  EXPECT_EQ(short_name(Op::backward_weight), "BW");
  EXPECT_EQ(short_name(Op::all_gather), "all_gather");
}

// What the columns say of each other.
TEST(Op, HasTraitsThatAgree) {
  for (const OpTraits& of : kOpTraits) {
    const std::string name(of.name);

    EXPECT_EQ(is_communication(of.op), of.direction != Direction::none) << name;
    EXPECT_EQ(is_communication(of.op), of.moves != Moves::nothing) << name;
    EXPECT_EQ(of.cost == Cost::ring, of.rounds > 0) << name;
    EXPECT_EQ(of.cost == Cost::ring, of.direction == Direction::both) << name;
    EXPECT_EQ(of.cost == Cost::message, of.moves == Moves::value) << name;
    EXPECT_TRUE(!runs_chunk(of.op) || computes(of.op)) << name;
    EXPECT_GT(of.units, 0u) << name;
  }
}

TEST(Op, IsCommunicationWhenOtherRanksTakePart) {
  EXPECT_TRUE(is_communication(Op::send));
  EXPECT_TRUE(is_communication(Op::token_count));
  EXPECT_TRUE(is_communication(Op::loss_report));
  EXPECT_FALSE(is_communication(Op::update));
  EXPECT_FALSE(is_communication(Op::input));
  EXPECT_TRUE(is_point_to_point(Op::recv));
  EXPECT_FALSE(is_point_to_point(Op::all_reduce));
}

}  // namespace
}  // namespace piper

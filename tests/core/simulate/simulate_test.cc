// When tasks run: by hand on plans of a few tasks, and by published formulas.
#include "core/simulate/simulate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "core/cost/cost_model.h"
#include "core/cost/costs.h"
#include "tests/core/simulate/small_plans.h"
#include "tests/support/pipeline_plan.h"
#include "tests/support/toy_model.h"

namespace piper {

// For messages of GoogleTest, and for comparisons.
static bool operator==(const TimeSpan& a, const TimeSpan& b) {
  return a.begin == b.begin && a.end == b.end;
}
static std::ostream& operator<<(std::ostream& out, const TimeSpan& span) {
  return out << span.begin << ".." << span.end;
}

namespace {

using test::pipeline;
using test::SmallPlan;
using test::TaskRef;
using Span = TimeSpan;

Simulation run(const SmallPlan& small, const SimulateOptions& options = {}) {
  Expected<Simulation> ran = simulate(small.plan(), small.durations(), options);
  EXPECT_TRUE(ran) << (ran ? "" : to_string(ran.error()));
  return ran ? *std::move(ran) : Simulation{};
}

TEST(Simulate, RunsTheTasksOfAStreamOneAfterTheOther) {
  SmallPlan small;
  const auto place = small.place();
  const TaskRef one = small.compute(place, Op::forward, 2);
  const TaskRef two = small.compute(place, Op::backward, 5);

  const Simulation ran = run(small);

  EXPECT_EQ(small.at(ran.times, place, one), (Span{0, 2}));
  EXPECT_EQ(small.at(ran.times, place, two), (Span{2, 7}));
  EXPECT_EQ(ran.makespan, 7U);
  EXPECT_FALSE(valid(small.at(ran.causes, place, one).task));
  EXPECT_EQ(small.at(ran.causes, place, two).task, TaskId{0});
}

TEST(Simulate, StartsAMessageOnBothSidesOnceBothAreFree) {
  SmallPlan small;
  const auto a = small.place(), b = small.place();
  const TaskRef early = small.compute(a, Op::forward, 10);
  const TaskRef late = small.compute(a, Op::forward, 3);
  const TaskRef first = small.message(a, b, 20, early);
  const TaskRef user = small.compute(b, Op::forward, 4, {first});

  const Simulation ran = run(small);

  EXPECT_EQ(small.at(ran.times, a, late), (Span{10, 13})) << "computation goes on beside it";
  EXPECT_EQ(small.at(ran.times, a, TaskRef{1, 0}), (Span{10, 30}));
  EXPECT_EQ(small.at(ran.times, b, first), (Span{10, 30}));
  EXPECT_EQ(small.at(ran.times, b, user), (Span{30, 34}));
}

TEST(Simulate, StartsACollectiveWhenTheLastMemberIsReady) {
  SmallPlan small;
  const auto a = small.place(), b = small.place();
  const TaskRef of_a = small.compute(a, Op::backward, 10),
                of_b = small.compute(b, Op::backward, 25);
  small.collective({{a, of_a}, {b, of_b}}, 7);

  const Simulation ran = run(small);

  EXPECT_EQ(small.at(ran.times, a, TaskRef{1, 0}), (Span{25, 32}));
  EXPECT_EQ(small.at(ran.times, b, TaskRef{1, 0}), (Span{25, 32}));
  EXPECT_EQ(small.at(ran.causes, a, TaskRef{1, 0}).program, b.program);
}

TEST(Simulate, TakesTheLongerOfTwoWays) {
  // A diamond: the way over c is longer than the one over b.
  SmallPlan small;
  const auto a = small.place(), b = small.place(), c = small.place(), d = small.place();
  const TaskRef start = small.compute(a, Op::forward, 1);
  const TaskRef over_b = small.compute(b, Op::forward, 10, {small.message(a, b, 2, start)});
  const TaskRef over_c = small.compute(c, Op::forward, 3, {small.message(a, c, 12, start)});
  const TaskRef end = small.compute(
      d, Op::forward, 5, {small.message(b, d, 1, over_b), small.message(c, d, 1, over_c)});

  const Simulation ran = run(small);

  EXPECT_EQ(small.at(ran.times, b, over_b), (Span{3, 13}));
  EXPECT_EQ(small.at(ran.times, c, over_c), (Span{13, 16}));
  EXPECT_EQ(small.at(ran.times, d, end), (Span{17, 22}));
}

TEST(Simulate, TakesThePublishedTimeOf1F1B) {
  for (const auto& [stages, microbatches] : {std::pair{1U, 3U}, {2U, 3U}, {4U, 8U}, {4U, 2U}}) {
    const auto made = pipeline({.stages = stages, .microbatches = microbatches});

    const auto ran = simulate(made.plan, unit_durations(made.plan, made.model));

    ASSERT_TRUE(ran);
    EXPECT_EQ(ran->makespan, 3 * (microbatches + stages - 1) * kUnitTicks)
        << stages << " stages, " << microbatches << " micro-batches";
  }
}

TEST(Simulate, GivesAStageOneUnitHoweverManyPiecesItHas) {
  auto made = pipeline({.stages = 2, .microbatches = 3});
  for (Chunk& chunk : made.plan.chunks) {  // both of one stage of one place
    chunk.program = 0;
    chunk.tags.back().index = 0;
  }

  const Durations durations = unit_durations(made.plan, made.model);

  for (std::uint32_t p = 0; p < 2; ++p) {
    for (std::size_t t = 0; t < durations[p].size(); ++t) {
      const Op op = made.plan.programs[p].tasks[t].op;
      EXPECT_EQ(durations[p][t], op == Op::forward    ? kUnitTicks / 2
                                 : op == Op::backward ? kUnitTicks
                                                      : 0);
    }
  }
}

// Longest messages of a pipeline of two ranks, in nanoseconds.
std::uint64_t message_time(const Machine& machine) {
  const auto made = pipeline({.stages = 2, .microbatches = 2});
  CostModel model;
  model.kind = CostModel::Kind::analytical;
  model.machine = machine;
  const auto costs = make_costs(model, scope_of(made.plan), made.model);
  const Durations durations = durations_of(made.plan, *costs);
  const auto ran = simulate(made.plan, durations);
  std::uint64_t longest = 0;
  for (std::size_t t = 0; t < made.plan.programs[0].tasks.size(); ++t) {
    if (is_point_to_point(made.plan.programs[0].tasks[t].op)) {
      longest = std::max(longest, ran->times[0][t].end - ran->times[0][t].begin);
    }
  }
  return longest;
}

TEST(Simulate, MovesMessagesByLatencyAndBandwidthOfTheirLinks) {
  // The larger micro-batch has 2 of 3 rows: 2 x 4 tokens x 8 floats are 256 bytes.
  Machine machine;
  machine.node = {1, 1};        // 1 us, 8 ns a byte
  machine.network = {10, 0.5};  // 10 us, 16 ns a byte
  machine.ranks_per_node = 2;
  EXPECT_EQ(message_time(machine), 1000U + 256 * 8);
  machine.ranks_per_node = 1;
  EXPECT_EQ(message_time(machine), 10000U + 256 * 16);
}

TEST(Contention, MakesTwoMessagesOfOnePlaceTakeTwiceAsLong) {
  SmallPlan small;
  const auto a = small.place(), b = small.place(), c = small.place();
  const TaskRef start = small.compute(a, Op::forward, 10);
  const TaskRef one = small.message(a, b, 100, start), two = small.message(a, c, 100, start);

  const Simulation alone = run(small), shared = run(small, {.contention = true});

  EXPECT_EQ(small.at(alone.times, b, one), (Span{10, 110}));
  EXPECT_EQ(small.at(alone.times, c, two), (Span{10, 110}));
  EXPECT_EQ(small.at(shared.times, b, one), (Span{10, 210}));
  EXPECT_EQ(small.at(shared.times, c, two), (Span{10, 210}));
}

TEST(Contention, LastsWhileMessagesOverlap) {
  SmallPlan small;
  const auto a = small.place(), b = small.place(), c = small.place();
  const TaskRef first = small.compute(a, Op::forward, 10);
  const TaskRef second = small.compute(a, Op::forward, 50);
  const TaskRef one = small.message(a, b, 100, first), two = small.message(a, c, 100, second);

  const Simulation ran = run(small, {.contention = true});

  // Alone until 60, when 50 of it are left; together until 160, when 50 of the other are left.
  EXPECT_EQ(small.at(ran.times, b, one), (Span{10, 160}));
  EXPECT_EQ(small.at(ran.times, c, two), (Span{60, 210}));
}

TEST(Contention, IsOfEachDirectionOfEachPlace) {
  SmallPlan small;
  const auto a = small.place(), b = small.place(), c = small.place(), d = small.place();
  const TaskRef of_a = small.compute(a, Op::forward, 10), of_b = small.compute(b, Op::forward, 10),
                of_c = small.compute(c, Op::forward, 10);
  const TaskRef there = small.message(a, b, 100, of_a), back = small.message(b, a, 100, of_b),
                apart = small.message(c, d, 100, of_c);

  const Simulation ran = run(small, {.contention = true});

  EXPECT_EQ(small.at(ran.times, b, there), (Span{10, 110}));
  EXPECT_EQ(small.at(ran.times, a, back), (Span{10, 110}));
  EXPECT_EQ(small.at(ran.times, d, apart), (Span{10, 110}));
}

// An overlap group of a forward, whose result is sent, and a backward.
struct Pair {
  SmallPlan small;
  SmallPlan::Place a = small.place(), b = small.place();
  TaskRef forward, backward, sent, user;

  Pair() {
    forward = small.compute(a, Op::forward, 10, {}, 1);
    backward = small.compute(a, Op::backward, 20, {}, 1);
    sent = small.message(a, b, 5, forward);
    user = small.compute(b, Op::forward, 3, {sent});
  }
};

TEST(Pairs, LetResultsGoAsSoonAsTheyAreThere) {
  Pair pair;

  const Simulation ran = run(pair.small);

  EXPECT_EQ(pair.small.at(ran.times, pair.b, pair.sent), (Span{10, 15}));
  EXPECT_EQ(ran.makespan, 30U);
}

TEST(Pairs, ThatAreAtomicLetNothingGoBeforeTheirEnd) {
  Pair pair;

  const Simulation ran = run(pair.small, {.atomic_pairs = true});

  EXPECT_EQ(pair.small.at(ran.times, pair.a, pair.forward), (Span{0, 10}));
  EXPECT_EQ(pair.small.at(ran.times, pair.a, pair.backward), (Span{10, 30}));
  EXPECT_EQ(pair.small.at(ran.times, pair.b, pair.sent), (Span{30, 35}));
  EXPECT_EQ(ran.makespan, 38U);
}

TEST(Pairs, ThatAreAtomicAreWholeOnTheCriticalPath) {
  Pair pair;
  const Simulation ran = run(pair.small, {.atomic_pairs = true});

  const auto cause = pair.small.at(ran.causes, pair.b, pair.sent);
  EXPECT_EQ(cause.program, pair.a.program);
  EXPECT_EQ(cause.task, TaskId{1}) << "its last member holds what follows back";
  EXPECT_EQ(pair.small.at(ran.causes, pair.a, pair.backward).task, TaskId{0});
}

TEST(Pairs, ThatCommunicateInsideAreNoBlocks) {
  SmallPlan small;
  const auto a = small.place(), b = small.place();
  const TaskRef forward = small.compute(a, Op::forward, 10, {}, 1);
  const TaskRef there = small.message(a, b, 5, forward);
  const TaskRef other = small.compute(b, Op::forward, 3, {there});
  small.compute(a, Op::backward, 20, {small.message(b, a, 5, other)}, 1);

  EXPECT_EQ(run(small).makespan, 43U);
  const auto atomic = simulate(small.plan(), small.durations(), {.atomic_pairs = true});

  ASSERT_FALSE(atomic);
  EXPECT_EQ(atomic.error().front().code, "simulate.pair");
}

}  // namespace
}  // namespace piper

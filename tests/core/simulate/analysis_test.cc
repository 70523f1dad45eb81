// What a simulated step says: bubbles, gaps and who is to blame, exposed communication, bytes.
#include "core/simulate/analysis.h"

#include <gtest/gtest.h>

#include "core/verify/memory.h"
#include "tests/core/simulate/small_plans.h"
#include "tests/support/pipeline_plan.h"
#include "tests/support/toy_model.h"

namespace piper {
namespace {

using test::pipeline;
using test::SmallPlan;
using test::TaskRef;

Analysis analysed(const SmallPlan& small, const SimulateOptions& options = {}) {
  const Plan plan = small.plan();
  return analyse(plan, test::toy_model(), simulate(plan, small.durations(), options).value());
}

TEST(Gaps, BlameTheComputationElsewhereAndCountTheMessage) {
  SmallPlan small;
  const auto a = small.place(), b = small.place();
  const TaskRef forward = small.compute(a, Op::forward, 10);
  small.compute(b, Op::forward, 6, {small.message(a, b, 4, forward)});

  const Analysis found = analysed(small);

  ASSERT_EQ(found.programs[1].gaps.size(), 1U);
  const Gap& gap = found.programs[1].gaps[0];
  EXPECT_EQ(gap.begin, 0U);
  EXPECT_EQ(gap.end, 14U);
  EXPECT_EQ(gap.exposed, 4U);
  EXPECT_EQ(gap.blame, (TaskOf{0, TaskId{0}}));
  EXPECT_EQ(found.programs[1].exposed, 4U);
  EXPECT_DOUBLE_EQ(found.programs[1].bubble, 1 - 6 / 20.0);
  EXPECT_DOUBLE_EQ(found.bubble, 1 - 16 / 40.0);
}

TEST(Gaps, CountOnlyTheMessageThatFallsIntoThem) {
  // The message from 10 to 30 is hidden by what b computes until 25.
  SmallPlan small;
  const auto a = small.place(), b = small.place();
  const TaskRef forward = small.compute(a, Op::forward, 10);
  small.compute(b, Op::forward, 25);
  small.compute(b, Op::backward, 6, {small.message(a, b, 20, forward)});

  const Analysis found = analysed(small);

  const Gap& gap = found.programs[1].gaps.at(0);
  EXPECT_EQ(gap.begin, 25U);
  EXPECT_EQ(gap.length(), 5U);
  EXPECT_EQ(gap.exposed, 5U);
}

TEST(Gaps, BlameTheTransferWhereNothingElseComputes) {
  SmallPlan small;
  const auto a = small.place(), b = small.place();
  const TaskRef of_a = small.compute(a, Op::backward, 10),
                of_b = small.compute(b, Op::backward, 10);
  small.collective({{a, of_a}, {b, of_b}}, 7);
  small.compute(a, Op::update, 1, {TaskRef{1, 0}});

  const Analysis found = analysed(small);

  const Gap& gap = found.programs[0].gaps.at(0);
  EXPECT_EQ(gap.length(), 7U);
  EXPECT_EQ(gap.exposed, 7U);
  EXPECT_EQ(gap.blame, (TaskOf{0, TaskId{2}})) << "the all-reduce";
}

TEST(Gaps, AtTheEndOfAStepHaveNothingAfterThem) {
  SmallPlan small;
  const auto a = small.place(), b = small.place();
  small.compute(a, Op::forward, 10);
  small.compute(b, Op::forward, 4);

  const Analysis found = analysed(small);

  EXPECT_TRUE(found.programs[0].gaps.empty());
  const Gap& gap = found.programs[1].gaps.at(0);
  EXPECT_EQ(gap.begin, 4U);
  EXPECT_EQ(gap.end, 10U);
  EXPECT_FALSE(valid(gap.next));
  EXPECT_FALSE(valid(gap.blame.task));
  EXPECT_EQ(gap.exposed, 0U);
}

TEST(CriticalPath, IsTheChainThatEndsLast) {
  SmallPlan small;
  const auto a = small.place(), b = small.place();
  const TaskRef forward = small.compute(a, Op::forward, 10);
  small.compute(a, Op::forward, 2);
  small.compute(b, Op::forward, 6, {small.message(a, b, 4, forward)});

  const Analysis found = analysed(small);

  // Forward, its send, which is the receive too, and the forward behind it.
  EXPECT_EQ(found.critical_path,
            (std::vector<TaskOf>{{0, TaskId{0}}, {0, TaskId{2}}, {1, TaskId{0}}}));
}

TEST(Bubble, Of1F1BIsThePublishedOne) {
  const auto made = pipeline({.stages = 4, .microbatches = 8});
  const auto ran = simulate(made.plan, unit_durations(made.plan, made.model));

  const Analysis found = analyse(made.plan, made.model, *ran);

  EXPECT_NEAR(found.bubble, 3.0 / 11, 1e-12) << "(S - 1) / (M + S - 1)";
  for (const ProgramReport& program : found.programs) {
    EXPECT_NEAR(program.bubble, 3.0 / 11, 1e-12);
    EXPECT_EQ(program.exposed, 0U) << "messages take no time";
  }
}

TEST(Peak, IsWhatIsLiveAtOnce) {
  // GPipe holds every micro-batch on every place; 1F1B on the first, but one on the last.
  const auto made = pipeline({.stages = 4, .microbatches = 8});
  const auto ran = simulate(made.plan, unit_durations(made.plan, made.model));

  const Analysis found = analyse(made.plan, made.model, *ran);

  for (std::uint32_t p = 0; p < 4; ++p) {
    EXPECT_GT(found.programs[p].peak_bytes, 0);
    EXPECT_LE(found.programs[p].peak_bytes, found.programs[p].bound_bytes);
  }
  EXPECT_GT(found.programs[1].peak_bytes, found.programs[2].peak_bytes)
      << "an earlier place has more micro-batches in flight";
}

}  // namespace
}  // namespace piper

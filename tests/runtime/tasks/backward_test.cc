#include "tests/runtime/tasks/chunk_plan.h"

namespace piper::test {
namespace {

// The chunk with the loss, forward and backward, with four counted labels in the global batch.
struct LossBackward : ChunkPlan {
  LossBackward() {
    task(Op::forward, 1, {.reads = {h, labels, loss_sum}, .writes = {loss_sum, saved}});
    task(Op::backward, 1,
         {.reads = {h, saved, count}, .writes = {gradient_of_h}, .frees = {h, saved}});
  }
  const BufferId h = value(kH), labels = value(kLabels), loss_sum = of(Buffer::Kind::loss_sum),
                 saved = of(Buffer::Kind::saved, 1), count = of(Buffer::Kind::token_count),
                 gradient_of_h = gradient(kH, 1);
};

TEST(Backward, DividesTheLossByTheCountOfTheGlobalBatch) {
  const LossBackward plan;
  ChunkHarness harness(plan);
  harness.cell<ScalarCell>(0, plan.count).number.fill_(4);

  for (int period = 1; period <= 2; ++period) {
    harness.tensor(0, plan.h) = rows({1, 20, 3, 40});
    harness.run();

    expect_equal(harness.tensor(0, plan.gradient_of_h), rows({0.5, 0.75, 0.5, 0.75}));
    expect_equal(harness.v.gradient, numbers({1, 15}) * period);  // it adds up
    EXPECT_TRUE(harness.cell<SavedCell>(0, plan.saved).inputs.empty()) << "it is freed";
  }
}

TEST(Backward, GivesNothingWhereNoLabelCounts) {
  const LossBackward plan;
  ChunkHarness harness(plan);
  harness.tensor(0, plan.h) = rows({1, 20, 3, 40});

  harness.run();

  expect_equal(harness.tensor(0, plan.gradient_of_h), rows({0, 0, 0, 0}));
  expect_equal(harness.v.gradient, numbers({0, 0}));
}

TEST(Backward, AddsTheGradientsOfAllWhoReadAnOutput) {
  ChunkPlan plan;
  const BufferId x = plan.value(kX), h = plan.value(kH), saved = plan.of(Buffer::Kind::saved);
  const BufferId one = plan.gradient(kH, 1), two = plan.gradient(kH, 2);
  plan.task(Op::forward, 0, {.reads = {x}, .writes = {h, saved}});
  plan.task(Op::backward, 0, {.reads = {x, saved, one, two}, .frees = {saved, one, two}});
  ChunkHarness harness(plan);
  harness.tensor(0, x) = rows({1, 2, 3, 4});
  harness.tensor(0, one) = rows({1, 0, 1, 0});
  harness.tensor(0, two) = rows({10, 1, 0, 1});

  harness.run();

  expect_equal(harness.w.gradient, numbers({1 * 11 + 3 * 1, 2 * 1 + 4 * 1}));
  EXPECT_FALSE(harness.tensor(0, one).defined());
}

TEST(Backward, IsRefusedWithoutTheTokenCount) {
  ChunkPlan plan;
  const BufferId saved = plan.of(Buffer::Kind::saved, 1);
  plan.task(Op::backward, 1, {.reads = {saved}});
  ChunkHarness harness(plan);

  const Status made = harness.make();

  ASSERT_FALSE(made);
  EXPECT_EQ(made.error()[0].code, "run.plan");
}

}  // namespace
}  // namespace piper::test

#include "tests/runtime/tasks/chunk_plan.h"

namespace piper::test {
namespace {

TEST(SplitBackward, GivesInputsTheirGradientsFirstAndWeightsTheirsLater) {
  ChunkPlan plan;
  const BufferId h = plan.value(kH), labels = plan.value(kLabels);
  const BufferId loss_sum = plan.of(Buffer::Kind::loss_sum);
  const BufferId count = plan.of(Buffer::Kind::token_count);
  const BufferId saved = plan.of(Buffer::Kind::saved, 1), dh = plan.gradient(kH, 1);
  plan.task(Op::forward, 1, {.reads = {h, labels, loss_sum}, .writes = {loss_sum, saved}});
  plan.task(Op::backward_input, 1, {.reads = {h, saved, count}, .writes = {dh, saved}});
  plan.task(Op::backward_weight, 1, {.reads = {h, saved}, .frees = {saved}});
  ChunkHarness harness(plan);
  harness.tensor(0, h) = rows({1, 20, 3, 40});
  harness.cell<ScalarCell>(0, count).number.fill_(4);
  ASSERT_TRUE(harness.make());

  harness.run_task(0, 0);
  harness.run_task(0, 1);
  expect_equal(harness.tensor(0, dh), rows({0.5, 0.75, 0.5, 0.75}));
  expect_equal(harness.v.gradient, numbers({0, 0}));

  harness.run_task(0, 2);
  expect_equal(harness.v.gradient, numbers({1, 15}));
  EXPECT_TRUE(harness.cell<SavedCell>(0, saved).rest.roots.empty()) << "it is freed";
}

TEST(SplitBackward, LeavesAllOfAChunkWithoutInputsToDifferentiateToTheWeights) {
  ChunkPlan plan;
  const BufferId x = plan.value(kX), h = plan.value(kH), saved = plan.of(Buffer::Kind::saved);
  const BufferId dh = plan.gradient(kH, 1);
  plan.task(Op::forward, 0, {.reads = {x}, .writes = {h, saved}});
  plan.task(Op::backward_input, 0, {.reads = {x, saved, dh}, .writes = {saved}});
  plan.task(Op::backward_weight, 0, {.reads = {x, saved}});
  ChunkHarness harness(plan);
  harness.tensor(0, x) = rows({1, 2, 3, 4});
  harness.tensor(0, dh) = rows({1, 0, 1, 1});
  ASSERT_TRUE(harness.make());

  harness.run_task(0, 0);
  harness.run_task(0, 1);
  expect_equal(harness.w.gradient, numbers({0, 0}));

  harness.run_task(0, 2);
  expect_equal(harness.w.gradient, numbers({4, 4}));
}

}  // namespace
}  // namespace piper::test

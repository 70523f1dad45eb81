#include "tests/runtime/tasks/chunk_plan.h"

namespace piper::test {
namespace {

TEST(Recompute, FillsWhatTheForwardDidNotKeepAndNothingElse) {
  ChunkPlan plan;
  plan.chunk(1).recompute = true;
  const BufferId h = plan.value(kH), labels = plan.value(kLabels);
  const BufferId loss_sum = plan.of(Buffer::Kind::loss_sum);
  const BufferId count = plan.of(Buffer::Kind::token_count);
  const BufferId saved = plan.of(Buffer::Kind::saved, 1), dh = plan.gradient(kH, 1);
  plan.task(Op::forward, 1, {.reads = {h, labels, loss_sum}, .writes = {loss_sum}});
  plan.task(Op::recompute, 1, {.reads = {h, labels}, .writes = {saved}});
  plan.task(Op::backward, 1, {.reads = {h, saved, count}, .writes = {dh}});
  ChunkHarness harness(plan);
  harness.tensor(0, h) = rows({1, 20, 3, 40});
  harness.cell<ScalarCell>(0, count).number.fill_(4);

  harness.run();

  EXPECT_EQ(harness.number(0, loss_sum), 2 * 4 + 3 * 60) << "the loss counts once";
  expect_equal(harness.tensor(0, dh), rows({0.5, 0.75, 0.5, 0.75}));
  expect_equal(harness.v.gradient, numbers({1, 15}));
}

TEST(Recompute, IsRefusedWithoutABufferForTheGraph) {
  ChunkPlan plan;
  const BufferId x = plan.value(kX);
  plan.task(Op::recompute, 0, {.reads = {x}});
  ChunkHarness harness(plan);

  const Status made = harness.make();

  ASSERT_FALSE(made);
  EXPECT_EQ(made.error()[0].code, "run.plan");
}

}  // namespace
}  // namespace piper::test

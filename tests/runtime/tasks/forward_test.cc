#include "tests/runtime/tasks/chunk_plan.h"

namespace piper::test {
namespace {

TEST(Forward, ComputesWhatAChunkGivesToOthersAndKeepsNoGraphUnasked) {
  ChunkPlan plan;
  const BufferId x = plan.value(kX), h = plan.value(kH);
  plan.task(Op::forward, 0, {.reads = {x}, .writes = {h}, .frees = {x}});
  ChunkHarness harness(plan);
  harness.tensor(0, x) = rows({1, 2, 3, 4});

  harness.run();

  expect_equal(harness.tensor(0, h), rows({1, 20, 3, 40}));
  EXPECT_FALSE(harness.tensor(0, h).requires_grad());
  EXPECT_FALSE(harness.tensor(0, x).defined()) << "it is freed";
}

TEST(Forward, AddsTheLossOfEachMicrobatchToTheSum) {
  ChunkPlan plan(2);
  const BufferId loss_sum = plan.of(Buffer::Kind::loss_sum);
  std::vector<BufferId> h;
  for (const std::uint32_t m : {0U, 1U}) {
    h.push_back(plan.value(kH, m));
    const BufferId labels = plan.value(kLabels, m);
    plan.task(Op::forward, 1, {.reads = {h[m], labels, loss_sum}, .writes = {loss_sum}}, m);
  }
  ChunkHarness harness(plan);
  harness.tensor(0, h[0]) = rows({1, 1});
  harness.tensor(0, h[1]) = rows({10, 100});

  harness.run();

  EXPECT_EQ(harness.number(0, loss_sum), (2 + 3) + (20 + 300));
}

TEST(Forward, KeepsTheGraphOfItsOutputsWhereItIsAsked) {
  ChunkPlan plan;
  const BufferId x = plan.value(kX), h = plan.value(kH), saved = plan.of(Buffer::Kind::saved);
  plan.task(Op::forward, 0, {.reads = {x}, .writes = {h, saved}});
  ChunkHarness harness(plan);
  harness.tensor(0, x) = rows({1, 2, 3, 4});

  harness.run();

  const auto& kept = harness.cell<SavedCell>(0, saved);
  ASSERT_EQ(kept.outputs.size(), 1U);
  EXPECT_TRUE(kept.outputs[0].is_valid());
  EXPECT_FALSE(kept.inputs[0].defined()) << "nobody wants its gradient";
  EXPECT_FALSE(harness.tensor(0, h).requires_grad());
}

TEST(Forward, CopiesAViewOfAReceivedValueWhosePlaceIsUsedAgain) {
  for (const bool in_arena : {false, true}) {
    ChunkPlan plan;
    const BufferId x = plan.value(kX), h = plan.value(kH);
    plan.task(Op::forward, 0, {.reads = {x}, .writes = {h}});
    ChunkHarness harness(plan);
    harness.rank(0).model.regions[0] = [](const Tensors& in) {
      return Tensors{in[0].view({2, 2})};
    };
    harness.tensor(0, x) = rows({1, 2, 3, 4});
    harness.cell<TensorCell>(0, x).in_arena = in_arena;

    harness.run();

    EXPECT_NE(harness.tensor(0, h).is_alias_of(harness.tensor(0, x)), in_arena);
  }
}

TEST(Forward, FailsWhereARegionGivesAnotherNumberOfResults) {
  ChunkPlan plan;
  const BufferId x = plan.value(kX), h = plan.value(kH);
  plan.task(Op::forward, 0, {.reads = {x}, .writes = {h}});
  ChunkHarness harness(plan);
  harness.rank(0).model.regions[0] = [](const Tensors& in) { return Tensors{in[0], in[0]}; };
  harness.tensor(0, x) = rows({1, 2});

  EXPECT_THROW(harness.run(), TaskFailure);
}

}  // namespace
}  // namespace piper::test

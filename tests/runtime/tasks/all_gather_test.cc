#include "tests/runtime/tasks/harness.h"

namespace piper::test {
namespace {

// Three ranks that have two elements each of a bucket of five.
struct Gathering : LinePlan {
  explicit Gathering(std::uint32_t zero) : LinePlan({0, 1, 2}) {
    bucket(BucketId{0}).elements = 5;
    bucket(BucketId{0}).shards = 3;
    bucket(BucketId{0}).zero = zero;
    task = {.op = Op::all_gather, .bucket = BucketId{0}, .communicator = collective({0, 1, 2})};
  }
  Task task;
  const BufferId parameter =
      program.buffer({.kind = Buffer::Kind::parameter, .bucket = BucketId{0}});
};

at::Tensor part_of(std::uint32_t rank) {
  return numbers({rank * 10.0 + 1, rank * 10.0 + 2});
}
at::Tensor whole() {
  return numbers({1, 2, 11, 12, 21, 22});
}

TEST(AllGather, PutsThePartsOfAllRanksTogetherInTheBucket) {
  Gathering plan(1);
  plan.program.task(plan.reduce, plan.task,
                    {.reads = {plan.parameter}, .writes = {plan.parameter}});
  TaskHarness harness(plan.builder.build());
  for (const std::uint32_t rank : {0U, 1U, 2U}) {
    const at::Tensor value = at::zeros({6}, at::kDouble);
    BucketState& state = harness.hold(rank, BucketId{0}, value, value.narrow(0, 2 * rank, 2));
    state.part.copy_(part_of(rank));
  }

  harness.run();

  for (const std::uint32_t rank : {0U, 1U, 2U}) {
    expect_equal(harness.rank(rank).bucket(BucketId{0}).value, whole());
    EXPECT_EQ(harness.moved(rank, 0), 2 * 2 * 8);
  }
}

TEST(AllGather, PutsThePartsTogetherInMemoryOfItsOwnWhereARankKeepsNoMore) {
  for (const bool in_arena : {false, true}) {
    Gathering plan(3);
    plan.program.arena(64);
    const BufferId gathered = plan.program.buffer({.kind = Buffer::Kind::gathered,
                                                   .bucket = BucketId{0},
                                                   .bytes = {0, 48},
                                                   .offset = in_arena ? 0 : Buffer::kNoOffset});
    plan.program.task(plan.reduce, plan.task, {.reads = {plan.parameter}, .writes = {gathered}});
    TaskHarness harness(plan.builder.build());
    for (const std::uint32_t rank : {0U, 1U, 2U}) {
      harness.hold(rank, BucketId{0}, part_of(rank)).gathered =
          std::make_unique<LentStorage>(at::kDouble, at::kCPU);
    }

    harness.run();

    for (const std::uint32_t rank : {0U, 1U, 2U}) {
      expect_equal(harness.cell<GatheredCell>(rank, gathered).tensor, whole());
      expect_equal(harness.rank(rank).bucket(BucketId{0}).value, part_of(rank));
    }
  }
}

TEST(AllGather, IsRefusedWithoutACommunicator) {
  Gathering plan(1);
  plan.task.communicator = none<CommId>();
  plan.program.task(plan.reduce, plan.task, {.writes = {plan.parameter}});
  TaskHarness harness(plan.builder.build());
  harness.hold(0, BucketId{0}, at::zeros({6}, at::kDouble));

  const Status made = harness.make();

  ASSERT_FALSE(made);
  EXPECT_EQ(made.error()[0].code, "run.plan");
}

}  // namespace
}  // namespace piper::test

#include "tests/runtime/tasks/harness.h"

namespace piper::test {
namespace {

TEST(ReduceScatter, AddsItsPartOfTheSumToWhatARankHas) {
  LinePlan plan({0, 1});
  plan.bucket(BucketId{0}).elements = 3;
  plan.bucket(BucketId{0}).shards = 2;
  plan.bucket(BucketId{0}).zero = 2;
  const BufferId whole = plan.program.buffer(
      {.kind = Buffer::Kind::full_gradient, .bucket = BucketId{0}, .bytes = {0, 32}});
  const BufferId part =
      plan.program.buffer({.kind = Buffer::Kind::parameter_gradient, .bucket = BucketId{0}});
  plan.program.task(
      plan.reduce,
      {.op = Op::reduce_scatter, .bucket = BucketId{0}, .communicator = plan.collective({0, 1})},
      {.reads = {whole, part}, .writes = {part}, .frees = {whole}});
  TaskHarness harness(plan.builder.build());
  for (const std::uint32_t rank : {0U, 1U}) {
    const at::Tensor value = at::zeros({4}, at::kDouble);
    harness.hold(rank, BucketId{0}, value, value.narrow(0, 2 * rank, 2)).gradient.fill_(100);
  }
  harness.tensor(0, whole) = numbers({1, 2, 3, 0});
  harness.tensor(1, whole) = numbers({10, 20, 30, 0});

  harness.run();

  expect_equal(harness.rank(0).bucket(BucketId{0}).gradient, numbers({111, 122}));
  expect_equal(harness.rank(1).bucket(BucketId{0}).gradient, numbers({133, 100}));
  for (const std::uint32_t rank : {0U, 1U}) {
    EXPECT_FALSE(harness.tensor(rank, whole).defined()) << "it is freed";
    EXPECT_EQ(harness.moved(rank, 0), 2 * 8);
  }
}

}  // namespace
}  // namespace piper::test

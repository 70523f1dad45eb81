#include "tests/runtime/tasks/harness.h"

namespace piper::test {
namespace {

// The gradients of ranks that had 1, 10, 100 and 1000 times (1, 2).
std::vector<at::Tensor> reduced(std::uint32_t ranks, bool alone, std::uint32_t group_size) {
  std::vector<std::uint32_t> members;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    members.push_back(rank);
  }
  LinePlan plan(members);
  const BufferId gradient =
      plan.program.buffer({.kind = Buffer::Kind::parameter_gradient, .bucket = BucketId{0}});
  plan.program.task(plan.reduce,
                    {.op = Op::all_reduce,
                     .bucket = BucketId{0},
                     .communicator = alone ? none<CommId>() : plan.collective(members, group_size)},
                    {.reads = {gradient}, .writes = {gradient}});
  TaskHarness harness(plan.builder.build());
  for (const std::uint32_t rank : members) {
    harness.hold(rank, BucketId{0}, numbers({0, 0})).gradient =
        numbers({1, 2}) * std::pow(10, rank);
  }
  harness.run();
  std::vector<at::Tensor> gradients;
  for (const std::uint32_t rank : members) {
    gradients.push_back(harness.rank(rank).bucket(BucketId{0}).gradient);
  }
  return gradients;
}

TEST(AllReduce, GivesTheSumToAllRanks) {
  for (const at::Tensor& gradient : reduced(3, false, 0)) {
    expect_equal(gradient, numbers({111, 222}));
  }
}

TEST(AllReduce, SumsWithinAGroup) {
  const std::vector<at::Tensor> gradients = reduced(4, false, 2);

  expect_equal(gradients[0], numbers({11, 22}));
  expect_equal(gradients[1], numbers({11, 22}));
  expect_equal(gradients[2], numbers({1100, 2200}));
  expect_equal(gradients[3], numbers({1100, 2200}));
}

TEST(AllReduce, LeavesTheGradientOfARankThatIsAlone) {
  expect_equal(reduced(1, true, 0)[0], numbers({1, 2}));
}

}  // namespace
}  // namespace piper::test

#include "tests/runtime/tasks/harness.h"

#include <cmath>
#include <limits>

namespace piper::test {
namespace {

// Two ranks with a bucket of two elements each. `replicated`: both have reduced the same gradient.
struct NormPlan : LinePlan {
  explicit NormPlan(bool replicated) : LinePlan({0, 1}) {
    if (replicated) {
      program.task(
          reduce,
          {.op = Op::all_reduce, .bucket = BucketId{0}, .communicator = collective({0, 1})});
    }
    program.task(reduce, {.op = Op::grad_norm, .communicator = collective({0, 1})},
                 {.reads = {gradient}, .writes = {norm}});
  }
  const BufferId gradient =
      program.buffer({.kind = Buffer::Kind::parameter_gradient, .bucket = BucketId{0}});
  const BufferId norm = program.buffer({.kind = Buffer::Kind::grad_norm});
};

struct NormResult {
  std::vector<double> norm, reported, finite, skip;
};

NormResult norm_of(const at::Tensor& first, const at::Tensor& second, bool replicated = false) {
  const NormPlan plan(replicated);
  TaskHarness harness(plan.builder.build());
  harness.hold(0, BucketId{0}, numbers({0, 0})).gradient = first;
  harness.hold(1, BucketId{0}, numbers({0, 0})).gradient = second;
  harness.run();
  NormResult result;
  for (const std::uint32_t rank : {0U, 1U}) {
    const StepScalars& scalars = harness.rank(rank).scalars;
    result.norm.push_back(harness.number(rank, plan.norm));
    result.reported.push_back(scalars.norm.item<double>());
    result.finite.push_back(scalars.finite.item<double>());
    result.skip.push_back(scalars.skip.item<double>());
  }
  return result;
}

using Both = std::vector<double>;

TEST(GradNorm, IsThatOfWhatAllRanksHold) {
  const NormResult result = norm_of(numbers({1, 4}), numbers({2, 2}));

  EXPECT_EQ(result.norm, (Both{5, 5}));
  EXPECT_EQ(result.reported, (Both{5, 5}));
  EXPECT_EQ(result.finite, (Both{1, 1}));
  EXPECT_EQ(result.skip, (Both{0, 0}));
}

TEST(GradNorm, CountsAReplicatedGradientOnce) {
  // The all-reduce before it gives both the sum, (3, 4).
  EXPECT_EQ(norm_of(numbers({1, 4}), numbers({2, 0}), true).norm, (Both{5, 5}));
}

TEST(GradNorm, OverflowsInNoSumOfSquaresOfFloats) {
  const at::Tensor large = at::tensor({3e30, 0.0}).to(at::kFloat);
  const double exact = static_cast<double>(3e30F);

  const NormResult result = norm_of(large, at::zeros({2}, at::kFloat));

  EXPECT_EQ(result.norm[0], exact);
  EXPECT_EQ(result.finite[1], 1);
}

TEST(GradNorm, SkipsTheUpdatesOfAllRanksWhereOneElementIsNotFinite) {
  for (const double poison : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    const NormResult result = norm_of(numbers({1, 1}), numbers({poison, 1}));

    EXPECT_EQ(result.finite, (Both{0, 0}));
    EXPECT_EQ(result.skip, (Both{1, 1}));
    EXPECT_FALSE(std::isfinite(result.norm[0]));
  }
}

}  // namespace
}  // namespace piper::test

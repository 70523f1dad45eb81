#include "tests/runtime/tasks/harness.h"

namespace piper::test {
namespace {

// Two replicas of seven rows, each of two micro-batches: rows 0 1, 2 3 and 4 5, 6.
struct InputPlan : LinePlan {
  InputPlan() : LinePlan({0, 1}, 2, 7) {
    const StreamId stream = program.stream("input", Stream::Kind::host);
    for (const std::uint32_t m : {0U, 1U}) {
      x[m] = program.buffer({.kind = Buffer::Kind::input, .value = kX, .microbatch = m});
      program.task(stream, {.op = Op::input, .microbatch = m}, {.writes = {x[m]}});
    }
  }
  BufferId x[2] = {};
};

std::string failure_of(TaskHarness& harness) {
  try {
    harness.run();
  } catch (const TaskFailure& failure) {
    return failure.code() + ": " + failure.what();
  }
  return "";
}

TEST(Input, CutsARanksBlockIntoTheRowsOfItsMicrobatches) {
  const InputPlan plan;
  TaskHarness harness(plan.builder.build());
  const at::Tensor all = at::arange(14, at::kDouble).view({7, 2});
  harness.rank(0).batch[kX] = all.narrow(0, 0, 4);
  harness.rank(1).batch[kX] = all.narrow(0, 4, 3);

  harness.run();

  expect_equal(harness.tensor(0, plan.x[0]), all.narrow(0, 0, 2));
  expect_equal(harness.tensor(0, plan.x[1]), all.narrow(0, 2, 2));
  expect_equal(harness.tensor(1, plan.x[0]), all.narrow(0, 4, 2));
  expect_equal(harness.tensor(1, plan.x[1]), all.narrow(0, 6, 1));
  EXPECT_FALSE(harness.tensor(0, plan.x[0]).is_alias_of(all)) << "the loader's memory";
}

TEST(Input, FailsWithoutAnInputOrWithOtherRows) {
  const InputPlan plan;
  TaskHarness missing(plan.builder.build()), other(plan.builder.build());
  for (const std::uint32_t rank : {0U, 1U}) {
    other.rank(rank).batch[kX] = at::zeros({5, 2}, at::kDouble);
  }

  EXPECT_EQ(failure_of(missing), "run.batch: the batch has no input 'x'");
  EXPECT_NE(failure_of(other).find("rows of input 'x', got [5, 2]"), std::string::npos);
}

}  // namespace
}  // namespace piper::test

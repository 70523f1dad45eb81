#include "tests/runtime/tasks/harness.h"

namespace piper::test {
namespace {

TEST(TokenCount, CountsTheLabelsOfAllMicrobatchesAndRanks) {
  LinePlan plan({0, 1}, 2, 8);
  std::vector<BufferId> labels;
  for (const std::uint32_t m : {0U, 1U}) {
    labels.push_back(
        plan.program.buffer({.kind = Buffer::Kind::input, .value = kLabels, .microbatch = m}));
  }
  const BufferId count = plan.program.buffer({.kind = Buffer::Kind::token_count});
  plan.program.task(plan.reduce, {.op = Op::token_count, .communicator = plan.collective({0, 1})},
                    {.reads = labels, .writes = {count}});
  TaskHarness harness(plan.builder.build());
  const auto set = [&](std::uint32_t rank, std::vector<std::vector<std::int64_t>> values) {
    for (std::size_t m = 0; m < labels.size(); ++m) {
      harness.tensor(rank, labels[m]) = at::tensor(values[m], at::kLong);
    }
  };
  set(0, {{3, -100}, {0, 7}});
  set(1, {{-100, -100}, {5, -100}});

  harness.run();
  EXPECT_EQ(harness.number(0, count), 4);
  EXPECT_EQ(harness.number(1, count), 4);

  set(0, {{-100, -100}, {-100, -100}});
  harness.run();
  EXPECT_EQ(harness.number(0, count), 1) << "it starts from nothing in each period";
  EXPECT_EQ(harness.number(1, count), 1);
}

}  // namespace
}  // namespace piper::test

#include "tests/runtime/tasks/harness.h"

#include <cmath>

namespace piper::test {
namespace {

struct ReportPlan : LinePlan {
  ReportPlan() : LinePlan({0, 1}) {
    program.task(compute, {.op = Op::loss_report, .communicator = collective({0, 1})},
                 {.reads = {loss_sum, count}, .writes = {loss_sum}});
  }
  const BufferId loss_sum = program.buffer({.kind = Buffer::Kind::loss_sum});
  const BufferId count = program.buffer({.kind = Buffer::Kind::token_count});
};

StepReport report_of(TaskHarness& harness, std::uint32_t rank) {
  return StepScalars::report(harness.rank(rank).scalars.all);
}

TEST(LossReport, IsTheLossOfAllRanksOverTheCount) {
  const ReportPlan plan;
  TaskHarness harness(plan.builder.build());
  for (const std::uint32_t rank : {0U, 1U}) {
    harness.cell<ScalarCell>(rank, plan.loss_sum).number.fill_(rank == 0 ? 3 : 7);
    harness.cell<ScalarCell>(rank, plan.count).number.fill_(4);  // of the global batch, on both
  }

  harness.run();

  for (const std::uint32_t rank : {0U, 1U}) {
    EXPECT_EQ(report_of(harness, rank).loss, 2.5);
    EXPECT_EQ(report_of(harness, rank).tokens, 4);
    EXPECT_EQ(harness.number(rank, plan.loss_sum), 0) << "for the next period";
  }
}

TEST(LossReport, IsNoNumberWhereNoLabelCounts) {
  const ReportPlan plan;
  TaskHarness harness(plan.builder.build());

  harness.run();

  EXPECT_TRUE(std::isnan(report_of(harness, 0).loss));
  EXPECT_EQ(report_of(harness, 1).tokens, 0);
}

}  // namespace
}  // namespace piper::test

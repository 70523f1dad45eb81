// What `piper check` says of a plan.
#include "core/show/summary.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "tests/support/pipeline_plan.h"

namespace piper {
namespace {

TEST(PlanSummary, HasALineAProgram) {
  const auto made = test::pipeline({.stages = 4, .replicas = 2, .microbatches = 8, .folded = true});

  test::expect_golden("show/summary", summary(made.plan, made.model));
}

}  // namespace
}  // namespace piper

// What differs between two plans.
#include "core/show/diff.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/golden.h"
#include "tests/support/pipeline_plan.h"
#include "tests/support/plan_edit.h"

namespace piper {
namespace {

using test::pipeline;
using test::PipelineCase;

std::string differs(const PipelineCase& one, const PipelineCase& other,
                    std::uint32_t program = kEveryProgram) {
  const PlanDifference found =
      diff({"one.toml", one.plan, one.model}, {"other.toml", other.plan, other.model}, program);
  EXPECT_EQ(found.same, found.text.empty());
  return found.text;
}

TEST(PlanDiff, OfOnePlanIsEmpty) {
  EXPECT_EQ(differs(pipeline(), pipeline()), "");
}

TEST(PlanDiff, SaysCountsThenTheFirstTasks) {
  test::expect_golden("show/diff",
                      differs(pipeline({.stages = 2, .replicas = 1, .microbatches = 2}),
                              pipeline({.stages = 2, .replicas = 2, .microbatches = 3})));
}

TEST(PlanDiff, FindsOneWait) {
  const PipelineCase one = pipeline();
  PipelineCase other = one;
  {
    test::ProgramEdit edit(other.plan, 0);
    edit.add_wait(edit.find(Op::backward, 1), edit.find(Op::send, 1));
  }

  const std::string text = differs(one, other);

  EXPECT_NE(text.find("\n-0B1@0 wait "), std::string::npos) << text;
  EXPECT_NE(text.find("\n+0B1@0 wait "), std::string::npos) << text;
  EXPECT_EQ(differs(one, other, 1).find("@@"), std::string::npos);
}

TEST(PlanDiff, OfTasksThatAreTheSameShowsTheLinesThatDiffer) {
  const PipelineCase one = pipeline();
  PipelineCase other = one;
  other.plan.programs[0].arena_bytes += 64;

  const std::string text = differs(one, other);

  const std::size_t at =
      text.find("same tasks; the first difference of the texts of the plans:\n-");
  ASSERT_NE(at, std::string::npos) << text;
  EXPECT_NE(text.find("\n+", at), std::string::npos) << text;
  EXPECT_EQ(text.find("other.toml:"), std::string::npos) << text;
}

TEST(PlanDiff, OfTwoStrategiesThatSayTheSameIsNone) {
  const PipelineCase one = pipeline();
  PipelineCase other = one;
  other.plan.origins.push_back({"hanayo", {"job.toml", 4, 1}});

  const PlanDifference found =
      diff({"one.toml", one.plan, one.model}, {"other.toml", other.plan, other.model});

  EXPECT_TRUE(found.same);
  EXPECT_NE(found.text.find("\nthe same plan: only who says what in it differs, "),
            std::string::npos)
      << found.text;
  EXPECT_NE(found.text.find("hanayo\n"), std::string::npos) << found.text;
}

}  // namespace
}  // namespace piper

// The planner's own plans: proven, and each wait that they have is there for a reason.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "core/pipeline.h"
#include "core/verify/memory.h"
#include "core/verify/verify.h"
#include "tests/support/plan_edit.h"
#include "tests/support/plan_oracle.h"
#include "tests/support/sharded_toy.h"
#include "tests/support/toy_model.h"

namespace piper {
namespace {

using test::find_fault;
using test::toy_config;
using test::toy_model;
using test::toy_pipeline;

struct Case {
  std::uint32_t pp, dp, microbatches;
  bool tied, gpipe;
};

constexpr Case kCases[] = {
    {1, 1, 1, false, false}, {1, 2, 3, true, false}, {2, 1, 3, false, false},
    {2, 2, 3, true, true},   {3, 1, 4, true, false}, {4, 1, 5, false, true},
};

struct Planned {
  ModelGraph model;
  Plans plans;
};

Planned planned(const Case& c) {
  const ModelGraph model = toy_model({.layers = 4, .tied = c.tied});
  const Config config = toy_config(c.pp, c.dp, c.microbatches);
  Expected<Plans> plans = plan(config, model, {toy_pipeline(config, model, c.gpipe)});
  PIPER_CHECK(plans.has_value(), plans ? "" : to_string(plans.error()));
  return {model, std::move(*plans)};
}

template <typename Visit>
void for_each_plan(Visit visit) {
  for (const Case& c : kCases) {
    const Planned made = planned(c);
    visit(made.plans.train, made.model);
    visit(made.plans.evaluate, made.model);
  }
  for (const test::ShardedShape& shape : test::small_shapes()) {
    const test::ShardedJob job = test::sharded_job(shape);
    const Expected<Plans> plans = test::plan(job);
    PIPER_CHECK(plans.has_value(), plans ? "" : to_string(plans.error()));
    visit(plans->train, job.model);
    visit(plans->evaluate, job.model);
  }
}

TEST(Lowered, IsAcceptedByTheVerifierAndByTheOracle) {
  for_each_plan([](const Plan& plan, const ModelGraph& model) {
    EXPECT_TRUE(verify(plan, model));
    EXPECT_EQ(find_fault(plan), "");
  });
}

TEST(Lowered, IsReadBackFromItsText) {
  for_each_plan([](const Plan& plan, const ModelGraph& model) {
    const std::string text = print(plan, model);

    const Expected<Plan> read = parse_plan(text, model, "p.plan");

    ASSERT_TRUE(read) << to_string(read.error());
    EXPECT_EQ(print(*read, model), text);
    EXPECT_TRUE(verify(*read, model));
  });
}

TEST(Lowered, LosesAWaitOnlyWhereTheOracleAgrees) {
  std::uint32_t refused = 0, harmless = 0;
  for_each_plan([&](const Plan& plan, const ModelGraph& model) {
    for (std::uint32_t p = 0; p < plan.programs.size(); ++p) {
      for (std::uint32_t t = 0; t < plan.programs[p].tasks.size(); ++t) {
        for (std::uint32_t w = 0; w < plan.programs[p].tasks[t].waits.count; ++w) {
          Plan mutant = plan;
          {
            test::ProgramEdit edit(mutant, p);
            edit[t].waits.erase(edit[t].waits.begin() + w);
          }
          const Status status = verify(mutant, model);
          ++(status ? harmless : refused);
          EXPECT_EQ(status.has_value(), find_fault(mutant).empty())
              << "wait " << w << " of task " << t << " of program " << p << "\n"
              << print(plan, model);
        }
      }
    }
  });
  std::printf("  %u waits cannot be dropped, %u can\n", refused, harmless);
  EXPECT_GT(refused, harmless);
}

TEST(Lowered, PeaksAtOrAboveTheLargestState) {
  for_each_plan([](const Plan& plan, const ModelGraph& model) {
    for (std::uint32_t p = 0; p < plan.programs.size(); ++p) {
      const auto exact = test::most_live_bytes(plan, model, p, 0);
      if (exact) {
        EXPECT_GE(peak_bytes(plan, model, p, 0), *exact);
        EXPECT_LE(static_cast<double>(peak_bytes(plan, model, p, 0)),
                  1.05 * static_cast<double>(*exact));
      }
    }
  });
}

}  // namespace
}  // namespace piper

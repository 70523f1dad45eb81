// The memory bound of every plan of the corpus against the exact value (a minimum cut) and against
// symbolic runs; and the arena against what it serves.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "core/verify/memory.h"
#include "tests/support/memory_cut.h"
#include "tests/support/plan_corpus.h"
#include "tests/support/plan_oracle.h"
#include "tests/support/symbolic_run.h"

namespace piper {
namespace {

using test::CorpusJob;

struct Worst {
  double ratio = 1;
  std::string where;
  std::uint32_t count = 0, exact = 0;

  void see(std::int64_t bound, std::int64_t value, const std::string& at) {
    const double own = value == 0 ? 1 : static_cast<double>(bound) / static_cast<double>(value);
    ++count;
    exact += bound == value ? 1 : 0;
    if (own > ratio) {
      ratio = own;
      where = at;
    }
  }
  void print(const char* what) const {
    std::printf("  %-46s worst %.3f, equal in %u of %u%s%s\n", what, ratio, exact, count,
                where.empty() ? "" : "; worst: ", where.c_str());
  }
};

template <typename Visit>
void for_each_rank(Visit visit) {
  for (const CorpusJob& job : test::plan_corpus()) {
    for (const Plan* const plan : {&job.plans.train, &job.plans.evaluate}) {
      for (std::uint32_t p = 0; p < plan->programs.size(); ++p) {
        visit(job, *plan, p);
      }
    }
  }
}

TEST(Bound, IsNeverBelowTheExactPeakAndCloseToItInPipelines) {
  Worst pipelines, all, arena, sharded, whole;
  for_each_rank([&](const CorpusJob& job, const Plan& plan, std::uint32_t p) {
    const std::int64_t bound = peak_bytes(plan, job.job.model, p, 0);
    const test::MemoryCut cut = test::cut_memory(plan, job.job.model, p, 0);
    const std::string at = "program " + std::to_string(p) + " of " + job.name;
    ASSERT_GE(bound, cut.peak) << at;
    const bool is_pipeline = job.spec.policies.empty() && job.spec.ep == 0;
    if (is_pipeline) {
      pipelines.see(bound, cut.peak, at);
    }
    all.see(bound, cut.peak, at);
    (is_pipeline ? arena : sharded).see(cut.arena, cut.served, at);
    whole.see(cut.peak, cut.peak_without_arena, at);
  });
  pipelines.print("bound / exact, pipelines:");
  all.print("bound / exact, all plans:");
  arena.print("arena / most that it serves, pipelines:");
  sharded.print("arena / most that it serves, others:");
  whole.print("peak with the arena / without:");
  EXPECT_LE(pipelines.ratio, 1.05);
  EXPECT_LE(all.ratio, 1.05);
  EXPECT_LE(arena.ratio, 1.05);
  EXPECT_LE(sharded.ratio, 1.05);
}

TEST(Bound, HoldsInRunsOfEveryOrder) {
  Worst runs;
  for (const CorpusJob& job : test::plan_corpus()) {
    for (const Plan* const plan : {&job.plans.train, &job.plans.evaluate}) {
      std::vector<std::int64_t> most(plan->world, 0);
      for (std::uint32_t seed = 10; seed < 12; ++seed) {
        const test::SymbolicRun run = test::run_symbolically(*plan, job.job.model, seed, 3);
        ASSERT_EQ(run.fault, "") << job.name;  // more than the bound is one
        for (std::uint32_t rank = 0; rank < plan->world; ++rank) {
          most[rank] = std::max(most[rank], run.peak[rank]);
        }
      }
      for (std::uint32_t rank = 0; rank < plan->world; ++rank) {
        const Plan::Seat seat = plan->seat(rank);
        const std::int64_t exact =
            test::cut_memory(*plan, job.job.model, seat.program, seat.coordinate).peak;
        ASSERT_LE(most[rank], exact) << job.name;
        runs.see(exact, most[rank], job.name);
      }
    }
  }
  runs.print("exact / most in two runs:");
}

// The cut is what brute force over all states finds.
TEST(Cut, IsTheLargestStateByBruteForce) {
  std::uint32_t compared = 0;
  for_each_rank([&](const CorpusJob& job, const Plan& plan, std::uint32_t p) {
    if (plan.programs[p].tasks.size() > 14) {
      return;
    }
    const auto exact = test::most_live_bytes(plan, job.job.model, p, 0);
    if (exact) {
      ++compared;
      EXPECT_EQ(test::cut_memory(plan, job.job.model, p, 0).peak, *exact) << job.name;
    }
  });
  std::printf("  %u programs compared\n", compared);
  EXPECT_GT(compared, 50u);
}

}  // namespace
}  // namespace piper

// What overlap groups win: the exposed communication of a plan, and of the same plan whose groups
// are blocks.
#include <gtest/gtest.h>

#include "core/pipeline.h"
#include "core/simulate/analysis.h"
#include "core/simulate/emulated.h"
#include "tests/support/atomic_pairs.h"
#include "tests/support/plugin_job.h"
#include "tests/support/toy_model.h"

namespace piper {
namespace {

constexpr std::uint32_t kRanks = 4, kMicrobatches = 16;

// A forward of a chunk takes 2.5 ms, a message 1 ms.
EmulateConfig slow_links() {
  EmulateConfig emulate;
  emulate.forward_ms = emulate.backward_input_ms = emulate.backward_weight_ms = 5;
  emulate.link_latency_us = 1000;
  return emulate;
}

struct Planned {
  explicit Planned(const std::string& schedule) : model(test::toy_model({.layers = 2 * kRanks})) {
    const test::PluginJob job{"dualpipe", kRanks, 1, kMicrobatches,
                              test::options_of("schedule=" + schedule)};
    auto plans = piper::plan(test::config_of(job), model, *test::propose(job, model));
    EXPECT_TRUE(plans) << to_string(plans.error());
    plan = plans->train;
  }

  std::uint64_t exposed(const Plan& of, const SimulateOptions& options = {}) const {
    const auto run = simulate(of, emulated_durations(of, slow_links()), options);
    EXPECT_TRUE(run) << to_string(run.error());
    std::uint64_t sum = 0;
    for (const ProgramReport& program : analyse(of, model, *run).programs) {
      sum += program.exposed;
    }
    return sum;
  }

  ModelGraph model;
  Plan plan;
};

TEST(Overlap, HidesMessagesThatBlocksExpose) {
  for (const std::string schedule : {"dualpipev", "dualpipe"}) {
    const Planned job(schedule);

    EXPECT_LT(job.exposed(job.plan), job.exposed(job.plan, {.atomic_pairs = true})) << schedule;
  }
}

TEST(Overlap, IsWhatAPlanWithBlocksLacks) {
  const Planned job("dualpipev");
  const Plan blocks = test::with_atomic_pairs(job.plan);

  EXPECT_EQ(simulate(blocks, emulated_durations(blocks, slow_links()))->makespan,
            simulate(job.plan, emulated_durations(job.plan, slow_links()), {.atomic_pairs = true})
                ->makespan);
}

}  // namespace
}  // namespace piper

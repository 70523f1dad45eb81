// [emulate]: computations that sleep and links that delay, in the real executor; and the record of
// a step.
#include <gtest/gtest.h>

#include <numeric>

#include "core/simulate/emulated.h"
#include "core/simulate/measured.h"
#include "runtime/exec/create_engine.h"
#include "tests/support/live_toy.h"

namespace piper {
namespace {

using test::ToyJob;

struct Running {
  explicit Running(const ToyJob& options, const EmulateConfig& emulate) {
    auto planned = test::toy_job(options);
    EXPECT_TRUE(planned) << to_string(planned.error());
    job = *planned;
    job.config.emulate = emulate;
    auto made = create_engine(
        job, [&]() -> Expected<LiveModel> { return test::live_toy(options.shape, options.dtype); });
    EXPECT_TRUE(made) << to_string(made.error());
    engine = std::move(*made);
    batch = test::toy_batch(job.model, job.plans.train.global_rows, 1);
  }

  StepResult train(bool record = false) {
    StepInput input = test::feed(job.plans.train, batch, 1);
    input.record = record;
    const Expected<StepResult> result = engine->train_step(input);
    EXPECT_TRUE(result) << to_string(result.error());
    return result ? *result : StepResult{};
  }

  Job job;
  std::unique_ptr<Engine> engine;
  Batch batch;
};

EmulateConfig sleeping(double forward, double input, double weight) {
  EmulateConfig emulate;
  emulate.forward_ms = forward;
  emulate.backward_input_ms = input;
  emulate.backward_weight_ms = weight;
  return emulate;
}

double seconds_of(const TimeSpan& span) {
  return static_cast<double>(span.end - span.begin) * 1e-9;
}

TEST(EmulatedCompute, TakesTheTimesThatItIsGiven) {
  Running run({2, 1, 4, {}, DType::float32, true}, sleeping(3, 2, 1));

  const StepResult result = run.train(/*record=*/true);

  const Durations expected = emulated_durations(run.job.plans.train, run.job.config.emulate);
  std::size_t slept = 0;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    for (std::size_t t = 0; t < expected[rank].size(); ++t) {
      EXPECT_GE(seconds_of(result.times[rank][t]), static_cast<double>(expected[rank][t]) * 1e-9);
      slept += expected[rank][t] > 0 ? 1 : 0;
    }
  }
  EXPECT_EQ(slept, 2U * 4 * 3) << "F, BI and BW of every micro-batch on both ranks";
  EXPECT_GE(std::accumulate(result.busy_ns.begin(), result.busy_ns.end(), std::int64_t{0}),
            2 * 4 * 6'000'000);
  EXPECT_GE(result.seconds, 4 * 6e-3 + 5e-3) << "the other rank's first forward and last BI too";
}

TEST(EmulatedCompute, TrainsNothingAndStaysFinite) {
  Running run({2, 2, 2, {}, DType::float32, false}, sleeping(0.1, 0.1, 0.1));
  const at::Tensor before = run.engine->parameter(0, ParameterId{0}).clone();

  const StepResult result = run.train();

  EXPECT_EQ(result.loss, 0);
  EXPECT_EQ(result.grad_norm, 0);
  EXPECT_TRUE(result.finite);
  EXPECT_GT(result.tokens, 0);
  EXPECT_TRUE(run.engine->parameter(0, ParameterId{0}).equal(before));
}

TEST(EmulatedLinks, HoldBothEndsOfAMessage) {
  EmulateConfig emulate;
  emulate.link_latency_us = 2000;
  Running run({2, 1, 2, {}, DType::float32, false}, emulate);

  const StepResult result = run.train(/*record=*/true);

  const Plan& plan = run.job.plans.train;
  const Spans spans = without_waits(plan, result.times);
  std::size_t messages = 0;
  for (std::size_t p = 0; p < plan.programs.size(); ++p) {
    for (std::size_t t = 0; t < spans[p].size(); ++t) {
      if (is_point_to_point(plan.programs[p].tasks[t].op)) {
        EXPECT_GE(seconds_of(spans[p][t]), 2e-3);
        ++messages;
      }
    }
  }
  EXPECT_EQ(messages, 8U);
  EXPECT_NE(result.loss, 0) << "computations are real";
}

TEST(Recording, IsThereOnlyWhereAskedFor) {
  Running run({2, 1, 2, {}, DType::float32, false}, {});

  EXPECT_TRUE(run.train().times.empty());
  EXPECT_EQ(run.train(/*record=*/true).times.size(), 2U);
  EXPECT_TRUE(run.train().times.empty());
}

TEST(Recording, KeepsTheOrderOfAStreamAndOfWaits) {
  Running run({2, 2, 3, {}, DType::float32, true}, {});

  const StepResult result = run.train(/*record=*/true);

  const Plan& plan = run.job.plans.train;
  for (std::uint32_t rank = 0; rank < plan.world; ++rank) {
    const Program& program = plan.programs[plan.seat(rank).program];
    const auto& times = result.times[rank];
    for (std::size_t t = 0; t < program.tasks.size(); ++t) {
      const Task& task = program.tasks[t];
      EXPECT_LE(times[t].begin, times[t].end);
      EXPECT_LE(static_cast<double>(times[t].end) * 1e-9, result.seconds);
      if (t > program.streams[index(task.stream)].tasks.begin) {
        EXPECT_GE(times[t].begin, times[t - 1].end);
      }
      for (const Wait& wait : program.waits_of(task)) {
        EXPECT_TRUE(wait.previous || times[t].begin >= times[index(wait.task)].end);
      }
    }
  }
}

}  // namespace
}  // namespace piper

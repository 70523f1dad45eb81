// A job of live_toy, its engine, a batch, and the parameters at the start.
#pragma once

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/exec/create_engine.h"
#include "runtime/train/scaled_loss.h"
#include "tests/support/live_toy.h"
#include "tests/support/wrapped_task.h"

namespace piper::test {

struct Running {
  explicit Running(const ToyJob& options, const std::function<void(Job&)>& change = {},
                   const std::function<void(LiveModel&)>& edit = {}, Wrap wrap = {})
      : Running(planned(options, change), options.shape, options.dtype, edit, std::move(wrap)) {}

  Running(Job given, const ToyShape& shape, DType dtype,
          const std::function<void(LiveModel&)>& edit = {}, Wrap wrap = {})
      : job(std::move(given)), model(live_toy(shape, dtype)) {
    const auto build = [&]() -> Expected<LiveModel> {
      LiveModel live = live_toy(shape, dtype);
      if (edit) {
        edit(live);
      }
      scale_gradients(live, gradient_scale);
      return live;
    };
    auto made = create_engine(job, EngineParts{.model = build, .wrap = std::move(wrap)});
    EXPECT_TRUE(made) << to_string(made.error());
    engine = std::move(*made);
    batch = toy_batch(job.model, job.plans.train.global_rows, 1);
    start = parameters();
  }

  std::vector<std::uint32_t> homes(ParameterId id) const { return engine->homes(id); }

  // Copies, from the first home.
  std::vector<at::Tensor> parameters() const {
    std::vector<at::Tensor> values;
    for (std::uint32_t i = 0; i < job.model.parameters.size(); ++i) {
      values.push_back(engine->parameter(homes(ParameterId{i}).at(0), ParameterId{i}).clone());
    }
    return values;
  }

  Expected<StepResult> train(std::int64_t step = 1, bool record = false) {
    StepInput input = feed(job.plans.train, batch, step);
    input.record = record;
    return engine->train_step(input);
  }
  Expected<StepResult> evaluate() { return engine->evaluate_step(feed(job.plans.evaluate, batch)); }

  std::shared_ptr<double> gradient_scale = std::make_shared<double>(1);  // of every rank's own
  Job job;
  LiveModel model;
  std::unique_ptr<Engine> engine;
  Batch batch;
  std::vector<at::Tensor> start;

 private:
  static Job planned(const ToyJob& options, const std::function<void(Job&)>& change) {
    auto job = toy_job(options);
    EXPECT_TRUE(job) << to_string(job.error());
    if (change) {
      change(*job);
    }
    return *job;
  }
};

// Losses, counts, norms, gradients and updates (SGD, lr 0.1, no clipping) of steps 1 .. `steps` in
// float64 are one device's, on every home the same bits; what is frozen stays.
inline void expect_one_devices_steps(Running& run, int steps) {
  run.engine->keep_gradients(true);
  for (int step = 1; step <= steps; ++step) {
    const std::vector<at::Tensor> before = run.parameters();
    const OneDevice one = one_device(run.model, before, run.batch);
    const Expected<StepResult> evaluated = run.evaluate();
    const Expected<StepResult> result = run.train(step);

    ASSERT_TRUE(evaluated) << to_string(evaluated.error());
    ASSERT_TRUE(result) << to_string(result.error());
    EXPECT_NEAR(evaluated->loss, one.loss, 1e-12 * one.loss);
    EXPECT_NEAR(result->loss, one.loss, 1e-12 * one.loss);
    EXPECT_EQ(result->tokens, one.tokens);
    EXPECT_EQ(evaluated->tokens, one.tokens);
    EXPECT_NEAR(result->grad_norm, one.norm, 1e-12 * one.norm);
    EXPECT_TRUE(result->finite);
    for (std::uint32_t i = 0; i < before.size(); ++i) {
      const ParameterId id{i};
      const std::vector<std::uint32_t> homes = run.homes(id);
      for (const std::uint32_t rank : homes) {
        const at::Tensor value = run.engine->parameter(rank, id);
        if (run.job.model.parameter(id).frozen) {
          EXPECT_TRUE(at::equal(value, before[i])) << i;
          continue;
        }
        const at::Tensor gradient = run.engine->gradient(rank, id);
        EXPECT_LT(relative_error(gradient, one.gradients[i]), 1e-12) << i;
        EXPECT_LT(relative_error(value, before[i] - 0.1 * one.gradients[i]), 1e-12) << i;
        EXPECT_TRUE(at::equal(value, run.engine->parameter(homes[0], id))) << i;
        EXPECT_TRUE(at::equal(gradient, run.engine->gradient(homes[0], id))) << i;
      }
    }
  }
}

}  // namespace piper::test

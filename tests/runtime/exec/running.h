// A job of live_toy, its engine, a batch, and the parameters at the start.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/exec/create_engine.h"
#include "tests/support/live_toy.h"

namespace piper::test {

struct Running {
  explicit Running(const ToyJob& options, const std::function<void(Job&)>& change = {},
                   const std::function<void(LiveModel&)>& edit = {})
      : Running(planned(options, change), options.shape, options.dtype, edit) {}

  Running(Job given, const ToyShape& shape, DType dtype,
          const std::function<void(LiveModel&)>& edit = {})
      : job(std::move(given)), model(live_toy(shape, dtype)) {
    auto made = create_engine(job, [&]() -> Expected<LiveModel> {
      LiveModel live = live_toy(shape, dtype);
      if (edit) {
        edit(live);
      }
      return live;
    });
    EXPECT_TRUE(made) << to_string(made.error());
    engine = std::move(*made);
    batch = toy_batch(job.model, job.plans.train.global_rows, 1);
    start = parameters();
  }

  std::vector<std::uint32_t> homes(ParameterId id) const {
    std::vector<std::uint32_t> ranks;
    for (std::uint32_t rank = 0; rank < engine->world(); ++rank) {
      if (engine->parameter(rank, id).defined()) {
        ranks.push_back(rank);
      }
    }
    return ranks;
  }

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

}  // namespace piper::test

// An engine without a model: it writes down what it is asked, and answers as the test says.
#pragma once

#include <ATen/ops/full.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runtime/exec/engine.h"

namespace piper::testing {

class FakeEngine : public Engine {
 public:
  explicit FakeEngine(std::uint32_t world) : world_(world) {}

  struct Asked {
    std::int64_t step;
    double lr_factor;
    std::vector<Batch> batches;  // by rank
  };
  std::vector<Asked> trained, evaluated;
  std::vector<std::string> cancelled;
  bool whole = true;  // what is_whole() answers
  double weight = 0;  // of the only parameter
  std::function<Expected<StepResult>(const Asked&)> on_train, on_evaluate;

  Expected<StepResult> train_step(const StepInput& input) override {
    trained.push_back(ask(input));
    return on_train ? on_train(trained.back()) : StepResult{};
  }
  Expected<StepResult> evaluate_step(const StepInput& input) override {
    evaluated.push_back(ask(input));
    return on_evaluate ? on_evaluate(evaluated.back()) : StepResult{};
  }
  bool is_whole() override { return whole; }
  void cancel(const std::string& why) override { cancelled.push_back(why); }
  at::Tensor parameter(std::uint32_t, ParameterId) const override { return {}; }
  at::Tensor master(std::uint32_t, ParameterId) const override {
    return at::full({1}, weight, at::kDouble);
  }
  at::Tensor gradient(std::uint32_t, ParameterId) const override { return {}; }
  void keep_gradients(bool) override {}
  void set_parameter(ParameterId, const at::Tensor&) override {}
  std::uint32_t world() const override { return world_; }

 private:
  Asked ask(const StepInput& input) const {
    Asked asked{input.step, input.lr_factor, {}};
    for (std::uint32_t rank = 0; rank < world_; ++rank) {
      asked.batches.push_back(input.batch(rank));
    }
    return asked;
  }

  std::uint32_t world_;
};

// Two data-parallel ranks that read tokens and labels, and train on `rows` rows a step.
inline Plan two_ranks(Plan::Kind kind, std::int64_t rows) {
  Plan plan;
  plan.kind = kind;
  plan.world = 2;
  plan.global_rows = rows;
  Program program;
  program.ranks = {0, 1};
  for (std::uint32_t value = 0; value < 2; ++value) {
    Buffer buffer;
    buffer.kind = Buffer::Kind::input;
    buffer.value = static_cast<ValueId>(value);
    program.buffers.push_back(buffer);
  }
  plan.programs.push_back(program);
  return plan;
}

}  // namespace piper::testing

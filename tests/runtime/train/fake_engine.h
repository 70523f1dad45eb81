// An engine without a model: it writes down what it is asked, and answers as the test says.
#pragma once

#include <ATen/ops/full.h>

#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "runtime/exec/engine.h"

namespace piper::testing {

class FakeEngine : public Engine {
 public:
  explicit FakeEngine(std::uint32_t ranks) : ranks_(ranks) {
    std::iota(ranks_.begin(), ranks_.end(), 0);
  }

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
  const std::vector<std::uint32_t>& local_ranks() const override { return ranks_; }
  std::vector<ParameterPart> parts(std::uint32_t, Kept) const override { return {}; }
  std::vector<std::uint32_t> homes(ParameterId) const override { return ranks_; }
  at::Tensor gather(Kept what, ParameterId, std::uint32_t, std::uint32_t) const override {
    return what == Kept::master ? at::full({1}, weight, at::kDouble) : at::Tensor();
  }
  std::vector<std::int64_t> gather(const std::vector<std::int64_t>& numbers,
                                   std::uint32_t) const override {
    return numbers;
  }
  void keep_gradients(bool) override {}
  void set_parameter(ParameterId, const at::Tensor&) override {}

 private:
  Asked ask(const StepInput& input) const {
    Asked asked{input.step, input.lr_factor, {}};
    for (const std::uint32_t rank : ranks_) {
      asked.batches.push_back(input.batch(rank));
    }
    return asked;
  }

  std::vector<std::uint32_t> ranks_;
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

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <cmath>

#include "runtime/optim/optimizer.h"

namespace piper {
namespace {

constexpr int kSteps = 5;
constexpr double kScale = 0.37;

at::Tensor numbers(std::uint64_t seed) {
  return at::randn({1003}, at::detail::createCPUGenerator(seed), at::kDouble);
}

double relative_error(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).abs() / b.abs()).max().item<double>();
}

// Five updates by ours and by `theirs`, from the same start and with the same gradients.
template <typename Optimizer, typename Options>
void expect_equal_to(const Options& options, const OptimizerSettings& settings) {
  at::Tensor ours = numbers(0);
  at::Tensor leaf = ours.clone().set_requires_grad(true);
  Optimizer theirs({leaf}, options);
  OptimizerState state = make_state(settings, ours);

  for (int step = 1; step <= kSteps; ++step) {
    const at::Tensor gradient = numbers(step);
    const at::Tensor before = gradient.clone();
    leaf.mutable_grad() = gradient * kScale;
    theirs.step();
    update(settings, step, ours, gradient, kScale, state);

    EXPECT_LT(relative_error(ours, leaf.detach()), 1e-12) << "step " << step;
    EXPECT_TRUE(at::equal(gradient, before)) << "the gradient is only read";
  }
}

TEST(Optimizer, UpdatesBySgdAsPyTorchDoes) {
  for (const double momentum : {0.0, 0.9}) {
    for (const double decay : {0.0, 0.05}) {
      expect_equal_to<torch::optim::SGD>(
          torch::optim::SGDOptions(0.02).momentum(momentum).weight_decay(decay),
          {OptimizerName::sgd, 0.02, 0, 0, 0, decay, momentum});
    }
  }
}

TEST(Optimizer, UpdatesByAdamWAsPyTorchDoes) {
  for (const double decay : {0.0, 0.1}) {
    expect_equal_to<torch::optim::AdamW>(
        torch::optim::AdamWOptions(0.003).betas({0.9, 0.95}).eps(1e-8).weight_decay(decay),
        {OptimizerName::adamw, 0.003, 0.9, 0.95, 1e-8, decay, 0});
  }
}

TEST(Optimizer, UpdatesFloatsAsItDoesDoubles) {
  for (const OptimizerSettings& settings :
       {OptimizerSettings{OptimizerName::sgd, 0.02, 0, 0, 0, 0.01, 0.9},
        OptimizerSettings{OptimizerName::adamw, 0.003, 0.9, 0.95, 1e-8, 0.1, 0}}) {
    at::Tensor wide = numbers(0);
    at::Tensor narrow = wide.to(at::kFloat);
    OptimizerState wide_state = make_state(settings, wide);
    OptimizerState narrow_state = make_state(settings, narrow);
    for (int step = 1; step <= kSteps; ++step) {
      const at::Tensor gradient = numbers(step);
      update(settings, step, wide, gradient, kScale, wide_state);
      update(settings, step, narrow, gradient.to(at::kFloat), kScale, narrow_state);
    }
    EXPECT_LT((narrow.to(at::kDouble) - wide).abs().max().item<double>(), 2e-6);
  }
}

TEST(Optimizer, UpdatesPartsOfAGroupAsTheWhole) {
  const OptimizerSettings settings{OptimizerName::adamw, 0.003, 0.9, 0.95, 1e-8, 0.1, 0};
  at::Tensor whole = numbers(0), parts = whole.clone();
  OptimizerState whole_state = make_state(settings, whole);
  OptimizerState first = make_state(settings, whole.narrow(0, 0, 301));
  OptimizerState second = make_state(settings, whole.narrow(0, 301, 702));
  for (int step = 1; step <= kSteps; ++step) {
    const at::Tensor gradient = numbers(step);
    update(settings, step, whole, gradient, 1, whole_state);
    update(settings, step, parts.narrow(0, 0, 301), gradient.narrow(0, 0, 301), 1, first);
    update(settings, step, parts.narrow(0, 301, 702), gradient.narrow(0, 301, 702), 1, second);
  }

  EXPECT_TRUE(at::equal(whole, parts));
}

TEST(Optimizer, LetsABackwardPassFailThatStillNeedsTheOldValue) {
  at::Tensor value = numbers(0);
  const at::Tensor leaf = value.detach().set_requires_grad(true);
  const at::Tensor loss = (leaf * leaf).sum();
  const OptimizerSettings sgd{OptimizerName::sgd, 0.1, 0, 0, 0, 0, 0};
  OptimizerState state = make_state(sgd, value);

  update(sgd, 1, value, numbers(1), 1, state);

  EXPECT_THROW(loss.backward(), c10::Error);
}

TEST(Optimizer, TakesSettingsOfTheGroupAndElseOfTheJob) {
  Config config;
  config.optimizer.lr = 0.5;
  config.optimizer.weight_decay = 0.25;
  config.optimizer.groups = {{{"*.bias"}, std::nullopt, 0.0, {}}, {{"head*"}, 0.125, {}, {}}};

  EXPECT_EQ(settings_of(config, 0).lr, 0.5);
  EXPECT_EQ(settings_of(config, 0).weight_decay, 0);
  EXPECT_EQ(settings_of(config, 1).lr, 0.125);
  EXPECT_EQ(settings_of(config, 1).weight_decay, 0.25);
  EXPECT_EQ(settings_of(config, 2).lr, 0.5);
}

TEST(LrFactor, WarmsUpLinearlyAndThenStays) {
  const LrSchedulerConfig config{4, Decay::none, {}, 0};

  EXPECT_EQ(lr_factor(config, 1, 10), 0.25);
  EXPECT_EQ(lr_factor(config, 4, 10), 1);
  EXPECT_EQ(lr_factor(config, 10, 10), 1);
}

TEST(LrFactor, DecaysOverTheLastPartOfTheSteps) {
  const LrSchedulerConfig config{2, Decay::linear, 0.4, 0.1};

  // 10 steps, 4 of them decay: the first 7 do not, and the decay would end at step 11.
  EXPECT_EQ(lr_factor(config, 7, 10), 1);
  EXPECT_DOUBLE_EQ(lr_factor(config, 8, 10), 0.1 + 0.9 * 0.75);
  EXPECT_DOUBLE_EQ(lr_factor(config, 9, 10), 0.1 + 0.9 * 0.5);
  EXPECT_DOUBLE_EQ(lr_factor(config, 10, 10), 0.1 + 0.9 * 0.25);
}

TEST(LrFactor, DecaysRightAfterTheWarmUpWithoutARatio) {
  const LrSchedulerConfig config{2, Decay::cosine, {}, 0};

  EXPECT_EQ(lr_factor(config, 3, 10), 1);
  EXPECT_DOUBLE_EQ(lr_factor(config, 7, 10), 0.5 * (1 + std::cos(3.14159265358979323846 * 0.5)));
  EXPECT_GT(lr_factor(config, 10, 10), 0);
}

TEST(LrFactor, DecaysByTheSquareRoot) {
  const LrSchedulerConfig config{0, Decay::sqrt, {}, 0.2};

  EXPECT_DOUBLE_EQ(lr_factor(config, 5, 16), 0.2 + 0.8 * 0.5);  // p = 4 / 16
}

TEST(LrFactor, ShortensADecayThatDoesNotFit) {
  const LrSchedulerConfig config{6, Decay::linear, 0.8, 0};

  EXPECT_EQ(lr_factor(config, 6, 10), 1);
  EXPECT_EQ(lr_factor(config, 7, 10), 1);
  EXPECT_DOUBLE_EQ(lr_factor(config, 8, 10), 0.75);
}

TEST(LrFactor, WarmsUpForAllStepsAtMost) {
  EXPECT_EQ(lr_factor({100, Decay::linear, {}, 0}, 10, 10), 1);
}

}  // namespace
}  // namespace piper

// The differentiable functions of the models: values, gradients, and no work that is not asked for.
#include <gtest/gtest.h>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>

#include "runtime/models/rms_norm.h"
#include "runtime/models/rotary.h"

namespace piper {
namespace {

using at::Tensor;

constexpr double kEps = 1e-6;

Tensor random(at::IntArrayRef shape, at::ScalarType dtype = at::kDouble) {
  return at::randn(shape, at::detail::createCPUGenerator(7), at::kDouble).to(dtype);
}

double difference(const Tensor& a, const Tensor& b) {
  return ((a - b).abs().max() / b.abs().max()).to(at::kDouble).item<double>();
}

// The gradient of sum(weights * f(x)) by central differences.
Tensor numerical_gradient(const std::function<Tensor(const Tensor&)>& f, const Tensor& x,
                          const Tensor& weights) {
  constexpr double kStep = 1e-6;
  Tensor gradient = at::empty_like(x);
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    const auto moved = [&](double by) {
      Tensor other = x.clone();
      other.view({-1})[i] += by;
      return (weights * f(other)).sum();
    };
    gradient.view({-1})[i] = (moved(kStep) - moved(-kStep)) / (2 * kStep);
  }
  return gradient;
}

// One size below the vector width, one that is no multiple of it.
class RmsNorm : public testing::TestWithParam<std::int64_t> {};

TEST_P(RmsNorm, EqualsItsFormula) {
  const Tensor x = random({3, 5, GetParam()}), weight = random({GetParam()});

  const Tensor y = rms_norm(x, weight, kEps);

  const Tensor expected = x / (x.pow(2).mean(-1, true) + kEps).sqrt() * weight;
  EXPECT_LT(difference(y, expected), 1e-14);
}

TEST_P(RmsNorm, HasTheGradientsOfFiniteDifferences) {
  Tensor x = random({2, 3, GetParam()}).set_requires_grad(true);
  Tensor weight = random({GetParam()}).add(2).set_requires_grad(true);
  const Tensor upstream = at::arange(x.numel(), at::kDouble).view_as(x).sin();

  rms_norm(x, weight, kEps).backward(upstream);

  EXPECT_LT(difference(x.grad(), numerical_gradient(
                                     [&](const Tensor& other) {
                                       return rms_norm(other, weight.detach(), kEps);
                                     },
                                     x.detach(), upstream)),
            1e-7);
  EXPECT_LT(difference(weight.grad(),
                       numerical_gradient(
                           [&](const Tensor& other) { return rms_norm(x.detach(), other, kEps); },
                           weight.detach(), upstream)),
            1e-7);
}

INSTANTIATE_TEST_SUITE_P(Sizes, RmsNorm, testing::Values(6, 16, 39),
                         [](const auto& test) { return std::to_string(test.param); });

TEST(RmsNormInBfloat16, RoundsBeforeAndAfterTheWeight) {
  const Tensor x = random({4, 32}, at::kBFloat16), weight = random({32}, at::kBFloat16);

  const Tensor y = rms_norm(x, weight, kEps);

  const Tensor wide = x.to(at::kFloat);
  const Tensor normalised = wide * at::rsqrt(wide.pow(2).mean(-1, true) + kEps);
  EXPECT_TRUE(at::equal(y, normalised.to(at::kBFloat16) * weight));
}

TEST(RmsNormBackward, GivesTheSameGradientsOneByOne) {
  Tensor x = random({2, 8}).set_requires_grad(true);
  Tensor weight = random({8}).set_requires_grad(true);
  const Tensor y = rms_norm(x, weight, kEps);

  const auto only_input =
      torch::autograd::grad({y}, {x}, {at::ones_like(y)}, /*retain_graph=*/true);
  const auto only_weight = torch::autograd::grad({y}, {weight}, {at::ones_like(y)}, true);
  const auto both = torch::autograd::grad({y}, {x, weight}, {at::ones_like(y)});

  EXPECT_TRUE(at::equal(only_input[0], both[0]));
  EXPECT_TRUE(at::equal(only_weight[0], both[1]));
}

TEST(RmsNormBackward, DoesNotDependOnTheNumberOfThreads) {
  const Tensor upstream = random({600, 96}, at::kFloat);
  const auto gradient = [&](int threads) {
    at::set_num_threads(threads);
    Tensor weight = random({96}, at::kFloat).set_requires_grad(true);
    rms_norm(random({600, 96}, at::kFloat), weight, kEps).backward(upstream);
    return weight.grad();
  };

  EXPECT_TRUE(at::equal(gradient(1), gradient(2)));
}

TEST(Rotary, TurnsPairsOfAHeadByTheirPosition) {
  const auto tables = std::make_shared<const RotaryTables>(/*head_dim=*/4, /*theta=*/100);
  const Tensor heads = random({2, 3, 2, 4});

  const Tensor turned = rotate(heads, tables);

  for (std::int64_t position = 0; position < 3; ++position) {
    for (std::int64_t i = 0; i < 2; ++i) {
      const double angle = static_cast<double>(position) * (i == 0 ? 1 : 0.1);  // 100^(-i/2)
      const Tensor a = heads.select(1, position).select(-1, i);
      const Tensor b = heads.select(1, position).select(-1, i + 2);
      const Tensor at_position = turned.select(1, position);
      EXPECT_LT(difference(at_position.select(-1, i), a * std::cos(angle) - b * std::sin(angle)),
                1e-6);
      EXPECT_LT(
          difference(at_position.select(-1, i + 2), b * std::cos(angle) + a * std::sin(angle)),
          1e-6);
    }
  }
}

TEST(Rotary, HasTheGradientOfFiniteDifferences) {
  const auto tables = std::make_shared<const RotaryTables>(4, 10000);
  Tensor heads = random({1, 3, 2, 4}).set_requires_grad(true);
  const Tensor upstream = at::arange(24, at::kDouble).view_as(heads).cos();

  rotate(heads, tables).backward(upstream);

  const Tensor numerical = numerical_gradient(
      [&](const Tensor& other) { return rotate(other, tables); }, heads.detach(), upstream);
  EXPECT_LT(difference(heads.grad(), numerical), 1e-8);
}

}  // namespace
}  // namespace piper

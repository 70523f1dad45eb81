#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include "runtime/model/build.h"

namespace piper {
namespace {

// Layers of equal shape start apart, and on any rank as on one device.
TEST(InitialValue, DependsOnTheNameAndTheSeedAlone) {
  const Init normal = Init::normal(1);
  const at::Tensor value = initial_value(normal, "w", {64, 3}, at::kFloat, 5);

  EXPECT_TRUE(at::equal(value, initial_value(normal, "w", {64, 3}, at::kFloat, 5)));
  EXPECT_TRUE(at::equal(value.view({-1}), initial_value(normal, "w", {192}, at::kFloat, 5)));
  EXPECT_FALSE(at::equal(value, initial_value(normal, "v", {64, 3}, at::kFloat, 5)));
  EXPECT_FALSE(at::equal(value, initial_value(normal, "w", {64, 3}, at::kFloat, 6)));
}

TEST(InitialValue, OfAnElementDoesNotDependOnHowManyThereAre) {
  const at::Tensor many = initial_value(Init::normal(1), "w", {1000}, at::kFloat, 0);
  const at::Tensor few = initial_value(Init::normal(1), "w", {333}, at::kFloat, 0);
  EXPECT_TRUE(at::equal(many.narrow(0, 0, 333), few));
}

TEST(InitialValue, IsNormalWithTheDeviationAskedFor) {
  const at::Tensor value =
      initial_value(Init::normal(0.02), "w", {1'000'000}, at::kDouble, 0) / 0.02;

  // Four standard errors of a million samples.
  EXPECT_NEAR(value.mean().item<double>(), 0, 0.004);
  EXPECT_NEAR(value.std().item<double>(), 1, 0.003);
  EXPECT_NEAR(value.pow(3).mean().item<double>(), 0, 0.016);
  EXPECT_NEAR(value.pow(4).mean().item<double>(), 3, 0.04);
  EXPECT_NEAR((value.abs() < 1).to(at::kDouble).mean().item<double>(), 0.6827, 0.002);
}

TEST(InitialValue, HasNoCorrelationBetweenNeighboursOrNames) {
  const auto value = [](const char* name, std::int64_t seed) {
    return initial_value(Init::normal(1), name, {100'001}, at::kDouble, seed);
  };
  const auto correlation = [](const at::Tensor& x, const at::Tensor& y) {
    return (x * y).mean().item<double>();
  };
  const at::Tensor a = value("model.layers.0.w", 0);

  // Four standard errors of 100,000 samples.
  EXPECT_NEAR(correlation(a.slice(0, 0, -1), a.slice(0, 1)), 0, 0.013);
  EXPECT_NEAR(correlation(a, value("model.layers.1.w", 0)), 0, 0.013);
  EXPECT_NEAR(correlation(a, value("model.layers.0.w", 1)), 0, 0.013);
}

TEST(InitialValue, InBfloat16IsTheRoundedFloat32Value) {
  const at::Tensor wide = initial_value(Init::normal(1), "w", {100}, at::kFloat, 0);
  const at::Tensor narrow = initial_value(Init::normal(1), "w", {100}, at::kBFloat16, 0);
  EXPECT_TRUE(at::equal(wide.to(at::kBFloat16), narrow));
}

TEST(InitialValue, OfAConstantIsThatConstant) {
  EXPECT_TRUE(at::equal(initial_value(Init::constant(1), "w", {3}, at::kFloat, 0), at::ones({3})));
}

}  // namespace
}  // namespace piper

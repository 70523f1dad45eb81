#include "runtime/train/compare.h"

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace piper {
namespace {

const double kInfinite = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Compare, AnErrorIsRelativeToTheLargestElement) {
  EXPECT_DOUBLE_EQ(relative_error(at::tensor({1.0, -4.5}), at::tensor({1.5, -4.0})), 0.125);
}

TEST(Compare, WhereAllIsZeroOnlyZeroWillDo) {
  EXPECT_EQ(relative_error(at::zeros({3}), at::zeros({3})), 0);
  EXPECT_EQ(relative_error(at::tensor({0.0, 1e-300}), at::zeros({2})), kInfinite);
}

TEST(Compare, NotANumberIsNeverEqual) {
  EXPECT_EQ(relative_error(at::tensor({kNan, 1.0}), at::tensor({1.0, 1.0})), kInfinite);
  EXPECT_EQ(relative_error(at::tensor({kNan}), at::tensor({kNan})), kInfinite);
  EXPECT_EQ(relative_error(at::tensor({kNan}), at::tensor({0.0})), kInfinite);
}

TEST(Compare, AnotherShapeIsNeverEqual) {
  EXPECT_EQ(relative_error(at::zeros({3}), at::zeros({4})), kInfinite);
}

TEST(Compare, BitwiseTellsZeroFromMinusZero) {
  EXPECT_TRUE(bitwise_equal(at::tensor({1.0f, 0.0f}), at::tensor({1.0f, 0.0f})));
  EXPECT_FALSE(bitwise_equal(at::tensor({0.0f}), at::tensor({-0.0f})));
  EXPECT_FALSE(bitwise_equal(at::tensor({1.0f}), at::tensor({1.0})));
}

Comparison comparison() {
  Comparison comparison;
  comparison.tolerance = tolerance_of(DType::float64, OptimizerName::sgd);
  comparison.parameters = {{"a.weight", {}, {}, {}}, {"b.weight", {}, {}, {}}};
  comparison.parameters[1].gradient.add(2e-16, 1, 1);
  return comparison;
}

TEST(Compare, TheVerdictNamesTheLargestDifferenceAndWhereItWas) {
  const std::string text = comparison().text();

  EXPECT_TRUE(comparison().passed());
  EXPECT_EQ(
      text.substr(text.rfind('\n') + 1),
      "parity with one device: ok, largest difference 2.0e-16 (gradient of b.weight, rank 1)");
  EXPECT_LT(text.find("b.weight"), text.find("a.weight"));  // worst first
}

TEST(Compare, WhatIsComparedAndEqualSaysSo) {
  Comparison equal = comparison();
  equal.tolerance = tolerance_of(DType::float32, OptimizerName::adamw);
  equal.parameters[0].gradient.add(3e-7, 1, 2);

  const std::string text = equal.text();

  EXPECT_NE(text.find("a.weight  3.0e-07   rank 1 step 2  equal     -\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("update: against one device's optimizer, given the gradients of this run\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("loss equal  evaluation loss equal  gradient norm equal\n"),
            std::string::npos)
      << text;
  equal.parameters = {{"a.weight", {}, {}, {}}};
  EXPECT_TRUE(equal.text().ends_with("parity with one device: ok, every number is equal"));
}

TEST(Compare, ADifferenceBeyondTheToleranceFails) {
  Comparison failed = comparison();
  failed.parameters[0].update.add(3e-10, 2, 1);

  const std::string text = failed.text();

  EXPECT_FALSE(failed.passed());
  EXPECT_NE(text.find("not met, largest difference 3.0e-10 (update of a.weight, rank 2), expected "
                      "at most 1.0e-10"),
            std::string::npos)
      << text;
}

TEST(Compare, TheLossAndTheNormCountToo) {
  Comparison loss = comparison(), norm = comparison(), evaluation = comparison();
  loss.loss.add(1e-9, 0, 1);
  norm.norm.add(kNan, 0, 1);
  evaluation.evaluation.add(1e-9, 0, 1);

  EXPECT_FALSE(loss.passed());
  EXPECT_FALSE(norm.passed());
  EXPECT_FALSE(evaluation.passed());
}

TEST(Compare, AFaultFailsWhateverItsSize) {
  Comparison failed = comparison();
  failed.parameters[0].faults.push_back("differs from rank 0's replica on rank 1 after step 1");

  EXPECT_FALSE(failed.passed());
  EXPECT_NE(failed.text().find("not met: a.weight: differs from rank 0's replica"),
            std::string::npos);
}

}  // namespace
}  // namespace piper

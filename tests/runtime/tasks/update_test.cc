#include "tests/runtime/tasks/harness.h"

namespace piper::test {
namespace {

struct UpdatePlan : LinePlan {
  explicit UpdatePlan(DType dtype = DType::float64) : LinePlan({0}) {
    bucket(BucketId{0}).dtype = dtype;
    program.task(compute, {.op = Op::update, .bucket = BucketId{0}}, {.reads = {norm}});
  }
  const BufferId norm = program.buffer({.kind = Buffer::Kind::grad_norm});
};

Config sgd(double lr, double max_norm = 0) {
  Config config;
  config.optimizer.name = OptimizerName::sgd;
  config.optimizer.lr = lr;
  config.optimizer.weight_decay = 0;
  config.optimizer.momentum = 0;
  config.training.max_norm = max_norm;
  return config;
}

TEST(Update, MovesTheWeightsAndClearsTheGradient) {
  const UpdatePlan plan;
  TaskHarness harness(plan.builder.build(), sgd(0.5));
  BucketState& state = harness.hold(0, BucketId{0}, numbers({1, 2}));
  state.gradient.copy_(numbers({4, -8}));
  harness.rank(0).scalars.begin(0.25, 1, false);

  harness.run();

  expect_equal(state.value, numbers({1 - 0.125 * 4, 2 + 0.125 * 8}));
  expect_equal(state.gradient, numbers({0, 0}));
}

TEST(Update, ClipsByTheNormThatItsCellHolds) {
  const UpdatePlan plan;
  TaskHarness harness(plan.builder.build(), sgd(1, 2));
  BucketState& state = harness.hold(0, BucketId{0}, numbers({0, 0}));
  state.gradient.copy_(numbers({8, 0}));
  harness.cell<ScalarCell>(0, plan.norm).number.fill_(8);

  harness.run();

  expect_equal(state.value, numbers({-8 * (2 / (8 + 1e-6)), 0}));
}

TEST(Update, ChangesTheGradientAloneWhereItIsSkipped) {
  const UpdatePlan plan;
  Config config = sgd(0.5);
  config.optimizer.name = OptimizerName::adamw;
  TaskHarness harness(plan.builder.build(), config);
  BucketState& state = harness.hold(0, BucketId{0}, numbers({1, 2}));
  state.gradient.copy_(numbers({4, -8}));
  harness.rank(0).scalars.begin(1, 1, true);

  harness.run();

  expect_equal(state.value, numbers({1, 2}));
  expect_equal(state.optimizer.first, numbers({0, 0}));
  expect_equal(state.optimizer.second, numbers({0, 0}));
  expect_equal(state.gradient, numbers({0, 0}));
}

TEST(Update, CorrectsTheBiasByTheCountThatTheStepScalarsHold) {
  const UpdatePlan plan;
  Config config;
  config.optimizer.name = OptimizerName::adamw;
  TaskHarness harness(plan.builder.build(), config);
  BucketState& state = harness.hold(0, BucketId{0}, numbers({1, 2}));
  state.gradient.copy_(numbers({4, -8}));
  harness.rank(0).scalars.begin(1, 3, false);
  at::Tensor expected = numbers({1, 2});
  OptimizerState moments = make_state(settings_of(config, 0), expected);

  harness.run(/*step=*/9);

  update(settings_of(config, 0), 3, expected, numbers({4, -8}), 1, moments);
  expect_equal(state.value, expected);
}

TEST(Update, RoundsMasterValuesToTheWeights) {
  const UpdatePlan plan(DType::bfloat16);
  TaskHarness harness(plan.builder.build(), sgd(1));
  BucketState& state = harness.hold(0, BucketId{0}, numbers({256, 1}).to(at::kBFloat16));
  state.gradient.copy_(numbers({-1, 0}));

  harness.run();

  expect_equal(state.master, at::tensor({257.0, 1.0}).to(at::kFloat));
  expect_equal(state.value, numbers({256, 1}).to(at::kBFloat16));  // 257 is none of its numbers
}

TEST(Update, IsRefusedForABucketWithoutGradients) {
  const UpdatePlan plan;
  TaskHarness harness(plan.builder.build(), sgd(1));
  harness.hold(0, BucketId{0}, numbers({1, 2})).gradient.reset();

  const Status made = harness.make();

  ASSERT_FALSE(made);
  EXPECT_EQ(made.error()[0].code, "run.plan");
}

}  // namespace
}  // namespace piper::test

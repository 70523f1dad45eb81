// Gradients, norm and clipping of a model whose gradients are known: the loss of a
// token is the sum of all weights, so every element has a gradient of 1, whatever the tokens are
// and however many count. Nine elements in the first layer have a norm of 3, sixteen in the last
// one of 4, and both of 5.
#include <ATen/ops/ne.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/exec/create_engine.h"
#include "tests/parity/harness.h"

namespace piper {
namespace {

using testing::Case;
using testing::Schedule;

constexpr Schedule kSchedules[] = {
    {"interleaved1f1b", "1f1b", 1},
    {"zerobubble", "zb1p", 1},
    {"zerobubble", "zbv", 2},
    {"dualpipe", "dualpipe", 2},
};

constexpr std::int64_t kLayers = 4;

Tensors add(const Tensors& in, const at::Tensor& weight, double factor) {
  return {in[0].add(weight.sum().mul(factor))};
}

// `tied`: a third of the first weight's gradient comes from its own layer, the rest from the last.
void sum_of_weights(Build& b, bool tied) {
  const std::int64_t seq_len = b.config().training.seq_len;
  const at::ScalarType dtype = b.dtype();
  const at::Tensor tokens = b.input("tokens", {seq_len}, at::kLong);
  const at::Tensor labels = b.input("labels", {seq_len}, at::kLong);
  const ParameterHandle first = b.parameter("first", {9}, Init::constant(0));
  const ParameterHandle last = b.parameter("last", {2, 8}, Init::constant(0));
  at::Tensor h =
      b.region({tokens}, [dtype](const Tensors& in) { return Tensors{in[0].to(dtype).mul(0)}; })[0];
  for (std::int64_t i = 0; i < kLayers; ++i) {
    const auto scope = b.annotate("layer");
    if (i == 0) {
      const double factor = tied ? 1.0 / 3 : 1;
      h = b.region({h}, [=](const Tensors& in) { return add(in, first, factor); })[0];
    } else if (i < kLayers - 1) {
      h = b.region({h}, [](const Tensors& in) { return Tensors{in[0].clone()}; })[0];
    } else {
      h = b.region({h}, [=](const Tensors& in) { return add(in, last, 1); })[0];
      if (tied) {
        h = b.region({h}, [=](const Tensors& in) { return add(in, first, 2.0 / 3); })[0];
      }
    }
  }
  b.loss(b.region({h, labels},
                  [](const Tensors& in) { return Tensors{in[0].mul(in[1].ne(-100)).sum()}; })[0]);
}
void untied(Build& b) {
  sum_of_weights(b, false);
}
void tied(Build& b) {
  sum_of_weights(b, true);
}

void expect_known(Case c, ModelFunction model, double max_norm) {
  c.dtype = "float64";
  c.model = {"name = \"sum\""};
  c.max_norm = max_norm;
  const auto job = make_job(c, model);
  ASSERT_TRUE(job.has_value()) << to_string(c) << '\n' << to_string(job.error());
  const auto engine =
      create_engine(*job, [&] { return build_model(job->config, model, /*measure=*/false); });
  ASSERT_TRUE(engine.has_value()) << to_string(engine.error());
  (*engine)->keep_gradients(true);

  const Batch batch = testing::uneven_batches(*job)(1);
  const auto result = (*engine)->train_step(testing::feed(job->plans.train, batch, 1));

  ASSERT_TRUE(result.has_value()) << to_string(c) << '\n' << to_string(result.error());
  EXPECT_GT(result->tokens, 1);
  EXPECT_NEAR(result->grad_norm, 5, 1e-12) << to_string(c);
  const double scale = max_norm > 0 ? max_norm / 5 : 1;  // 0.2 of every gradient for a norm of 1
  for (std::uint32_t i = 0; i < job->model.parameters.size(); ++i) {
    const Parameter& parameter = job->model.parameters[i];
    std::uint32_t homes = 0;
    for (const std::uint32_t rank : (*engine)->homes(ParameterId{i})) {
      const at::Tensor gradient = (*engine)->gradient(rank, ParameterId{i});
      if (gradient.defined()) {
        ++homes;
        EXPECT_TRUE(gradient.allclose(at::ones(parameter.shape, at::kDouble), 1e-12))
            << parameter.name << " on rank " << rank << ", " << to_string(c);
        const at::Tensor update = at::ones(parameter.shape, at::kDouble).mul(-0.01 * scale);
        EXPECT_TRUE((*engine)->parameter(rank, ParameterId{i}).allclose(update, 1e-6, 0))
            << parameter.name << " on rank " << rank << ", " << to_string(c);
      }
    }
    EXPECT_GE(homes, c.dp) << parameter.name;
  }
}

class KnownNorm : public ::testing::TestWithParam<Schedule> {};

TEST_P(KnownNorm, IsFiveAndClipsEveryGradientToAFifth) {
  for (const std::uint32_t dp : {1U, 2U}) {
    for (const ModelFunction model : {&untied, &tied}) {
      for (const int stage : {0, 1, 2, 3}) {
        Case c = testing::case_of(GetParam());
        c.pp = 2, c.dp = dp, c.microbatches = 4;
        c.zero = "stage = " + std::to_string(stage) + "\nbucket_bytes = 1";
        expect_known(c, model, 1);
        expect_known(c, model, 0);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Pipeline, KnownNorm, ::testing::ValuesIn(kSchedules),
                         [](const auto& instance) {
                           const std::string name = instance.param.name;
                           return name == "1f1b" ? "one_f_one_b" : name;
                         });

// Padding to three ranks counts nothing, and a bucket of both layers nothing twice.
TEST(KnownNorm, IsFiveOverRanksThatDivideNoParameter) {
  for (const std::uint32_t pp : {1U, 2U}) {
    for (const int stage : {0, 1, 2, 3}) {
      Case c;
      c.pp = pp, c.dp = 3, c.microbatches = 2;
      c.zero = "stage = " + std::to_string(stage) + "\nbucket_bytes = 0";
      expect_known(c, &tied, 1);
    }
  }
}

}  // namespace
}  // namespace piper

// Qwen3 against Hugging Face's implementation; see tests/data/oracles/README.md.
#include <gtest/gtest.h>

#include <ATen/ATen.h>
#include <torch/utils.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/checkpoint/safetensors.h"
#include "runtime/models/find_model.h"
#include "tests/runtime/models/running_model.h"
#include "tests/support/oracle_file.h"

namespace piper {
namespace {

using nlohmann::json;

class Oracle : public ::testing::TestWithParam<const char*> {
 protected:
  std::string file(const std::string& name) const { return testing::oracle_file(GetParam(), name); }
  json read(const std::string& name) const { return json::parse(std::ifstream(file(name))); }

  static at::Tensor matrix(const json& rows) {
    const auto values = rows.get<std::vector<std::vector<std::int64_t>>>();
    at::Tensor tensor = at::empty(
        {static_cast<std::int64_t>(values.size()), static_cast<std::int64_t>(values[0].size())},
        at::kLong);
    for (std::size_t row = 0; row < values.size(); ++row) {
      std::copy(values[row].begin(), values[row].end(),
                tensor[static_cast<std::int64_t>(row)].data_ptr<std::int64_t>());
    }
    return tensor;
  }

  void SetUp() override {
    const json batch = read("batch.json");
    inputs_ = {{"tokens", matrix(batch["tokens"])}, {"labels", matrix(batch["labels"])}};
    config_.model.hf_assets_path = file("");
    config_.training.dataset = Dataset::jsonl;
    config_.training.dtype = DType::float64;
    config_.training.seq_len = inputs_["tokens"].size(1);
    expected_ = read("expected.json");
  }

  RunningModel model() const {
    LiveModel live = value_of(build_model(config_, false));
    auto weights = value_of(load_weights(file("model.safetensors"), live.graph));
    return RunningModel(std::move(live), weights);
  }
  double valid_tokens() const { return expected_["valid_tokens"].get<double>(); }

  // max |a - b| / max |b|
  static double difference(const at::Tensor& a, const at::Tensor& b) {
    return ((a - b).abs().max() / b.abs().max()).item<double>();
  }

  Config config_;
  std::map<std::string, at::Tensor> inputs_;
  json expected_;
};

TEST_P(Oracle, LossAndGradientsEqualHuggingFaces) {
  RunningModel qwen3 = model();

  const at::Tensor loss = qwen3.loss(inputs_) / valid_tokens();
  loss.backward();

  EXPECT_NEAR(loss.item<double>(), expected_["loss"].get<double>(), 1e-9);
  const auto gradients = value_of(load_tensors(file("grads.safetensors")));
  EXPECT_EQ(gradients.size(), qwen3.graph().parameters.size());
  for (const auto& [name, gradient] : gradients) {
    EXPECT_LT(difference(qwen3.parameter(name).grad(), gradient), 1e-6) << name;
  }
}

TEST_P(Oracle, AModelInFloat64ThroughoutHasTheSameGradients) {
  config_.model.hf_assets_path.clear();  // by keys: float64 throughout
  config_.model.layers = 4;
  config_.model.dim = 48;
  config_.model.heads = 4;
  config_.model.kv_heads = 2;
  config_.model.head_dim = 16;
  config_.model.ffn = 96;
  config_.model.vocab = 256;
  config_.model.rope_theta = 1e6;
  config_.model.tied = std::string(GetParam()) == "qwen3_tied";
  RunningModel qwen3 = model();

  const at::Tensor loss = qwen3.loss(inputs_) / valid_tokens();
  loss.backward();

  EXPECT_NEAR(loss.item<double>(), expected_["loss"].get<double>(), 2e-8);
  for (const auto& [name, gradient] : value_of(load_tensors(file("grads.safetensors")))) {
    EXPECT_LT(difference(qwen3.parameter(name).grad(), gradient), 1e-6) << name;
  }
}

TEST_P(Oracle, ThreeAdamWStepsGiveHuggingFacesWeights) {
  RunningModel qwen3 = model();
  const json& adamw = expected_["adamw"];
  const double lr = adamw["lr"], eps = adamw["eps"], decay = adamw["weight_decay"];
  const double beta1 = adamw["betas"][0], beta2 = adamw["betas"][1];
  std::map<std::string, at::Tensor> first, second;

  for (int step = 1; step <= adamw["steps"]; ++step) {
    const at::Tensor loss = qwen3.loss(inputs_) / valid_tokens();
    EXPECT_NEAR(loss.item<double>(), adamw["losses"][step - 1].get<double>(), 1e-9);
    loss.backward();
    const torch::NoGradGuard no_grad;
    for (const Parameter& parameter : qwen3.graph().parameters) {
      at::Tensor& w = qwen3.parameter(parameter.name);
      const at::Tensor g = w.grad();
      at::Tensor& m = first.try_emplace(parameter.name, at::zeros_like(w)).first->second;
      at::Tensor& v = second.try_emplace(parameter.name, at::zeros_like(w)).first->second;
      m = beta1 * m + (1 - beta1) * g;
      v = beta2 * v + (1 - beta2) * g * g;
      w.mul_(1 - lr * decay);
      w.sub_(lr * (m / (1 - std::pow(beta1, step))) /
             ((v / (1 - std::pow(beta2, step))).sqrt() + eps));
      w.mutable_grad().reset();
    }
  }

  for (const auto& [name, weight] : value_of(load_tensors(file("adamw.safetensors")))) {
    EXPECT_LT(difference(qwen3.parameter(name), weight), 1e-6) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Qwen3, Oracle, ::testing::Values("qwen3_dense", "qwen3_tied"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace piper

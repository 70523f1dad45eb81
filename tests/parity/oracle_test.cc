// Every plan that fits reproduces Hugging Face's Qwen3: loss, gradients and three AdamW steps. See
// tests/data/oracles/README.md.
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/checkpoint/safetensors.h"
#include "runtime/train/compare.h"
#include "runtime/train/train.h"
#include "runtime/train/weights.h"
#include "tests/parity/harness.h"
#include "tests/runtime/data/fixture.h"
#include "tests/support/oracle_file.h"

namespace piper {
namespace {

using testing::Case;
using testing::feed;

class Oracle : public ::testing::TestWithParam<std::string> {
 protected:
  static std::string path(const std::string& name) {
    return testing::oracle_file(GetParam(), name);
  }
  static nlohmann::json json(const std::string& name) {
    return nlohmann::json::parse(std::ifstream(path(name)));
  }

  static Batch batch(const ModelGraph& model) {
    const nlohmann::json rows = json("batch.json");
    Batch batch;
    for (std::uint32_t i = 0; i < model.values.size(); ++i) {
      if (!model.values[i].is_input()) {
        continue;
      }
      std::vector<std::int64_t> flat;
      for (const auto& row : rows.at(model.values[i].name)) {
        flat.insert(flat.end(), row.begin(), row.end());
      }
      batch.emplace(static_cast<ValueId>(i),
                    at::tensor(flat).view({static_cast<std::int64_t>(rows["tokens"].size()), -1}));
    }
    return batch;
  }

  static Case case_of(std::uint32_t pp, std::uint32_t dp, std::uint32_t microbatches) {
    Case c;
    c.pp = pp, c.dp = dp, c.microbatches = microbatches, c.rows = 5, c.seq_len = 24;
    c.optimizer = "adamw";
    c.model = {"name = \"qwen3\"", "hf_assets_path = \"" + path("") + "\""};
    c.sections = {"[checkpoint]\ninitial_load_in_hf = true"};
    return c;
  }

  static void set_optimizer(Job& job, const nlohmann::json& adamw) {
    OptimizerConfig& optimizer = job.config.optimizer;
    optimizer.lr = adamw["lr"];
    optimizer.beta1 = adamw["betas"][0];
    optimizer.beta2 = adamw["betas"][1];
    optimizer.eps = adamw["eps"];
    optimizer.weight_decay = adamw["weight_decay"];
  }

  static void expect_same_file(const std::string& file, const std::string& expected_file) {
    const auto tensors = load_tensors(file), expected = load_tensors(expected_file);
    ASSERT_TRUE(tensors.has_value()) << to_string(tensors.error());
    ASSERT_TRUE(expected.has_value()) << to_string(expected.error());
    EXPECT_EQ(tensors->size(), expected->size());
    for (const auto& [name, tensor] : *expected) {
      ASSERT_EQ(tensors->count(name), 1u) << name;
      EXPECT_LE(relative_error(tensors->at(name), tensor), 1e-6) << name;
    }
  }

  // The largest relative error of what `read` gives on any rank, and its name.
  template <typename Read>
  static void expect_close(const Job& job, const Engine& engine, const std::string& file,
                           const std::string& what, Read read) {
    const auto expected = load_tensors(path(file));
    ASSERT_TRUE(expected.has_value()) << to_string(expected.error());
    int compared = 0;
    for (std::uint32_t i = 0; i < job.model.parameters.size(); ++i) {
      const std::string& name = job.model.parameters[i].name;
      ASSERT_EQ(expected->count(name), 1u) << name;
      for (const std::uint32_t rank : engine.homes(static_cast<ParameterId>(i))) {
        const at::Tensor tensor = read(rank, static_cast<ParameterId>(i));
        if (tensor.defined()) {
          EXPECT_LE(relative_error(tensor, expected->at(name)), 1e-6)
              << what << " of " << name << " on rank " << rank;
          ++compared;
        }
      }
    }
    EXPECT_GE(compared, static_cast<int>(expected->size()));
  }
};

TEST_P(Oracle, IsReproducedByEveryPlanThatFits) {
  const nlohmann::json expected = json("expected.json");
  for (const std::uint32_t pp : {1u, 2u, 4u}) {
    for (const std::uint32_t dp : {1u, 2u}) {
      for (const std::uint32_t microbatches : {1u, 2u, 3u, 5u}) {
        if (dp * microbatches > 5) {
          continue;
        }
        const Case c = case_of(pp, dp, microbatches);
        SCOPED_TRACE(to_string(c));
        auto job = make_job(c);
        ASSERT_TRUE(job.has_value()) << to_string(job.error());
        const nlohmann::json& adamw = expected["adamw"];
        set_optimizer(*job, adamw);
        const auto engine = Engine::create(*job);
        ASSERT_TRUE(engine.has_value()) << to_string(engine.error());
        ASSERT_TRUE(load_initial_weights(*job, **engine).has_value());
        (*engine)->keep_gradients(true);
        const Batch rows = batch(job->model);

        for (std::int64_t step = 1; step <= adamw["steps"]; ++step) {
          const auto result = (*engine)->train_step(feed(job->plans.train, rows, step));
          ASSERT_TRUE(result.has_value()) << to_string(result.error());
          const double loss = adamw["losses"][static_cast<std::size_t>(step - 1)];
          EXPECT_NEAR(result->loss, loss, 1e-9) << "step " << step;
          if (step == 1) {
            EXPECT_EQ(result->tokens, expected["valid_tokens"]);
            EXPECT_NEAR(result->grad_norm, expected["grad_norm"], 1e-9);
            expect_close(*job, **engine, "grads.safetensors", "gradient",
                         [&](auto rank, auto id) { return (*engine)->gradient(rank, id); });
          }
        }
        expect_close(*job, **engine, "adamw.safetensors", "weight after three steps",
                     [&](auto rank, auto id) { return (*engine)->parameter(rank, id); });
      }
    }
  }
}

// The same through the loop, the loader and the files that a user sees.
TEST_P(Oracle, IsWhatTrainingSaves) {
  const testing::Folder folder;
  const nlohmann::json rows = json("batch.json"), expected = json("expected.json");
  std::string lines;
  for (std::size_t row = 0; row < rows["tokens"].size(); ++row) {
    lines +=
        nlohmann::json{{"tokens", rows["tokens"][row]}, {"labels", rows["labels"][row]}}.dump();
    lines += '\n';
  }
  Case c = case_of(2, 2, 2);
  c.sections = {
      "[checkpoint]\ninitial_load_in_hf = true\nlast_save_in_hf = true\nlast_save_path = \"" +
      folder.path("saved") + '"'};
  auto job = make_job(c);
  ASSERT_TRUE(job.has_value()) << to_string(job.error());
  set_optimizer(*job, expected["adamw"]);
  job->config.training.steps = expected["adamw"]["steps"];
  job->config.training.dataset_path = {folder.write("rows.jsonl", lines)};
  job->config.validation.fraction = 0;

  const auto summary = train(*job, {folder.path("gradients.safetensors"), false});

  ASSERT_TRUE(summary.has_value()) << to_string(summary.error());
  EXPECT_NEAR(summary->loss.value(), expected["adamw"]["losses"].back().get<double>(), 1e-9);
  expect_same_file(folder.path("gradients.safetensors"), path("grads.safetensors"));
  expect_same_file(folder.path("saved"), path("adamw.safetensors"));
}

INSTANTIATE_TEST_SUITE_P(Qwen3, Oracle, ::testing::Values("qwen3_dense", "qwen3_tied"),
                         [](const auto& instance) { return instance.param; });

}  // namespace
}  // namespace piper

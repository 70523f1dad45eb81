#include "runtime/checkpoint/check_weights.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/runtime/checkpoint/small_model.h"

namespace piper {
namespace {

using testing::Folder;
using testing::graph_of;
using testing::small_config;
using testing::small_weights;
using testing::Tensors;
using testing::write_model;

// A job that loads the folder `hf`: a model of two layers, 64 positions and 300 tokens.
class CheckWeights : public ::testing::Test {
 protected:
  CheckWeights() {
    write_model(folder_, "hf", small_config(), weights_);
    config_.model.hf_assets_path = folder_.path("hf");
    config_.training.dataset = Dataset::jsonl;
    config_.training.seq_len = 16;
    config_.checkpoint.initial_load_in_hf = true;
  }

  // The folder is loaded by its path alone, into the model that the keys give.
  void load_by_path() {
    config_.model.hf_assets_path.clear();
    config_.checkpoint.initial_load_path = folder_.path("hf");
    const Qwen3Config c = small_config();
    config_.model.layers = c.layers, config_.model.dim = c.dim, config_.model.heads = c.heads;
    config_.model.kv_heads = c.kv_heads, config_.model.head_dim = c.head_dim;
    config_.model.ffn = c.ffn, config_.model.vocab = c.vocab;
  }

  void add(const std::string& name, const at::Tensor& tensor) {
    weights_.emplace(name, tensor);
    ASSERT_TRUE(save_weights(folder_.path("hf/model.safetensors"), weights_));
  }

  Expected<CheckReport> check() const { return check_weights(config_, graph_of(model_), true); }

  // Every error or remark as `code: message`, the folder's name replaced by DIR; "" where there is
  // none.
  std::string said() const {
    const auto report = check();
    std::string text;
    for (const Diagnostic& one : report ? report->remarks : report.error()) {
      text +=
          (one.severity == Severity::error ? "error " : "") + one.code + ": " + one.message + '\n';
    }
    for (std::size_t at; (at = text.find(folder_.path())) != std::string::npos;) {
      text.replace(at, folder_.path().size(), "DIR");
    }
    return text;
  }

  Folder folder_;
  Config config_;
  const Tensors model_ = small_weights(small_config(), 1);  // what the job's model has
  Tensors weights_ = model_;                                // what the folder has
};

TEST_F(CheckWeights, SaysNothingOfAFolderThatIsTheJobs) {
  EXPECT_EQ(said(), "");
  load_by_path();
  EXPECT_EQ(said(), "");
}

TEST_F(CheckWeights, RemarksKeysThatAreNotTheFolders) {
  config_.model.rope_theta = 500;
  config_.model.norm_eps = 1e-3;

  EXPECT_EQ(said(),
            "model.other_folder: model.rope_theta: 500.0, where DIR/hf/config.json has 10000.0\n"
            "model.other_folder: model.norm_eps: 0.001, where DIR/hf/config.json has 1e-06\n");
}

TEST_F(CheckWeights, RefusesAFolderLoadedByPathWhoseModelIsNotTheJobs) {
  Qwen3Config folder = small_config();
  folder.rope_theta = 5e6;
  write_model(folder_, "hf", folder, weights_);
  load_by_path();

  EXPECT_EQ(
      said(),
      "error model.other_folder: expected the model of DIR/hf/config.json, got the job's with "
      "rope_theta = 10000.0 (there 5000000.0)\n");

  config_.model.rope_theta = 10000;
  EXPECT_EQ(said(),
            "model.other_folder: model.rope_theta: 10000.0, where DIR/hf/config.json has "
            "5000000.0\n");
}

TEST_F(CheckWeights, ComparesTheFolderOfAFileToo) {
  Qwen3Config folder = small_config();
  folder.norm_eps = 1e-5;
  write_model(folder_, "hf", folder, weights_);
  load_by_path();
  config_.checkpoint.initial_load_path += "/model.safetensors";

  EXPECT_NE(said().find("norm_eps = 1e-06 (there 1e-05)"), std::string::npos) << said();
}

TEST_F(CheckWeights, ComparesBothFoldersOfAJobThatNamesTwo) {
  Qwen3Config other = small_config();
  other.rope_theta = 5e6;
  write_model(folder_, "weights", other, weights_);
  config_.checkpoint.initial_load_path = folder_.path("weights");

  EXPECT_NE(said().find("expected the model of DIR/weights/config.json"), std::string::npos)
      << said();
}

TEST_F(CheckWeights, RefusesWhatTheFolderLoadedByPathSaysAndTheModelDoesNotDo) {
  folder_.write("hf/config.json", R"({"model_type": "qwen3", "is_causal": false, "hidden_size": 8,
      "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4,
      "intermediate_size": 12, "vocab_size": 300})");
  load_by_path();
  EXPECT_EQ(said(), "error model.hf_config: 'is_causal': expected true, got false\n");
}

TEST_F(CheckWeights, RemarksTensorsThatAreNotUsed) {
  add("model.layers.0.self_attn.q_proj.bias", at::ones({8}));
  add("model.layers.0.mlp.gate_proj.weight_scale_inv", at::ones({1, 1}));
  EXPECT_EQ(said(),
            "checkpoint.unused_tensor: 2 tensors of 27 are not used: "
            "'model.layers.0.mlp.gate_proj.weight_scale_inv', "
            "'model.layers.0.self_attn.q_proj.bias'\n");
}

TEST_F(CheckWeights, RefusesABiasThatNoConfigSaysIsUnused) {
  std::filesystem::remove(folder_.path("hf/config.json"));
  load_by_path();
  add("model.layers.0.self_attn.rotary_emb.inv_freq", at::ones({2}));
  EXPECT_EQ(said(),
            "checkpoint.unused_tensor: 1 tensor of 26 is not used: "
            "'model.layers.0.self_attn.rotary_emb.inv_freq'\n");

  add("model.layers.0.self_attn.q_proj.bias", at::ones({8}));
  EXPECT_EQ(said(),
            "error checkpoint.extra_tensor: expected the model's parameters alone, got 1 tensor "
            "that would change what its layers compute: 'model.layers.0.self_attn.q_proj.bias'\n");
}

TEST_F(CheckWeights, RefusesFurtherLayersUnlessAKeySaysHowMany) {
  std::filesystem::remove(folder_.path("hf/config.json"));
  load_by_path();
  add("model.layers.2.input_layernorm.weight", at::ones({8}));
  EXPECT_EQ(said(),
            "checkpoint.unused_tensor: 1 tensor of 26 is not used: "
            "'model.layers.2.input_layernorm.weight'\n");

  config_.model.layers = 0;
  EXPECT_EQ(said(),
            "error checkpoint.extra_tensor: expected 2 layers, got 1 tensor of more: "
            "'model.layers.2.input_layernorm.weight' (model.layers says how many are meant)\n");
}

TEST_F(CheckWeights, RemarksOnceWhatFewerLayersLeaveOut) {
  Qwen3Config folder = small_config();
  folder.layers = 4;
  write_model(folder_, "hf", folder, small_weights(folder, 1));
  config_.model.layers = 2;
  EXPECT_EQ(said(),
            "model.other_folder: model.layers: 2, where DIR/hf/config.json has 4\n"
            "checkpoint.unused_tensor: 22 tensors of 47 are not used: "
            "'model.layers.2.input_layernorm.weight', 'model.layers.2.mlp.down_proj.weight', "
            "'model.layers.2.mlp.gate_proj.weight', 'model.layers.2.mlp.up_proj.weight', "
            "'model.layers.2.post_attention_layernorm.weight', "
            "'model.layers.2.self_attn.k_norm.weight', 'model.layers.2.self_attn.k_proj.weight', "
            "'model.layers.2.self_attn.o_proj.weight' and 14 more\n");
}

TEST_F(CheckWeights, TakesAnOutputLayerThatIsTheEmbeddingOnceMore) {
  Qwen3Config tied = small_config();
  tied.tied = true;
  write_model(folder_, "hf", tied, weights_);  // all ones, lm_head.weight too
  const auto model = graph_of(small_weights(tied, 1));

  const auto report = check_weights(config_, model, true);

  ASSERT_TRUE(report.has_value()) << to_string(report.error());
  EXPECT_EQ(to_string(report->remarks), "");
}

TEST_F(CheckWeights, RefusesATiedModelWithAnOutputLayerOfItsOwn) {
  Qwen3Config tied = small_config();
  tied.tied = true;
  weights_["lm_head.weight"] = weights_["lm_head.weight"].clone();
  weights_["lm_head.weight"][299][7] = 2;
  write_model(folder_, "hf", tied, weights_);
  const auto model = graph_of(small_weights(tied, 1));

  const auto refused = check_weights(config_, model, true);
  config_.model.tied = true;
  const auto taken = check_weights(config_, model, true);

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error()[0].code, "checkpoint.untied_head");
  ASSERT_TRUE(taken.has_value()) << to_string(taken.error());
  ASSERT_EQ(taken->remarks.size(), 1u);
  EXPECT_EQ(taken->remarks[0].message, "1 tensor of 25 is not used: 'lm_head.weight'");
}

TEST_F(CheckWeights, NamesTheElementThatIsNoNumber) {
  at::Tensor& weight = weights_["model.layers.1.mlp.up_proj.weight"];
  weight = weight.clone();
  weight[3][5] = std::numeric_limits<float>::quiet_NaN();
  ASSERT_TRUE(save_weights(folder_.path("hf/model.safetensors"), weights_));
  EXPECT_EQ(said(),
            "error checkpoint.not_finite: tensor 'model.layers.1.mlp.up_proj.weight' at [3, 5]: "
            "expected finite numbers, got nan\n");

  weight[3][5] = -std::numeric_limits<float>::infinity();
  ASSERT_TRUE(save_weights(folder_.path("hf/model.safetensors"), weights_));
  EXPECT_NE(said().find("[3, 5]: expected finite numbers, got -inf"), std::string::npos);
  const auto loaded = load_weights(folder_.path("hf"), graph_of(model_));
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error()[0].code, "checkpoint.not_finite");
}

TEST_F(CheckWeights, RemarksASequenceBeyondThePositions) {
  config_.training.seq_len = 64;
  EXPECT_EQ(said(), "");
  config_.training.seq_len = 65;
  EXPECT_EQ(said(),
            "training.seq_len: training.seq_len: 65 is beyond max_position_embeddings = 64 of "
            "DIR/hf/config.json\n");
}

TEST_F(CheckWeights, RemarksBytesUnderWeightsOfAnotherVocabulary) {
  config_.training.dataset = Dataset::text;
  EXPECT_NE(said().find("are not the tokens of loaded weights with a vocabulary of 300"),
            std::string::npos)
      << said();
  config_.checkpoint.initial_load_in_hf = false;
  EXPECT_EQ(said().find("tokens"), std::string::npos) << said();
}

TEST_F(CheckWeights, TakesBytesUnderWeightsOfBytes) {
  Qwen3Config bytes = small_config();
  bytes.vocab = 257;
  const Tensors weights = small_weights(bytes, 1);
  write_model(folder_, "hf", bytes, weights);
  config_.training.dataset = Dataset::text;

  const auto report = check_weights(config_, graph_of(weights), true);

  ASSERT_TRUE(report.has_value()) << to_string(report.error());
  EXPECT_EQ(to_string(report->remarks), "");
}

TEST_F(CheckWeights, RemarksRandomWeightsBesideAFolderThatHasSome) {
  for (const auto given : {std::optional<bool>(), std::optional(false)}) {
    config_.checkpoint.initial_load_in_hf = given;
    EXPECT_EQ(
        said(),
        "checkpoint.random_weights: the weights start at random and not as those in 'DIR/hf', "
        "which checkpoint.initial_load_in_hf = true loads\n");
  }
  std::filesystem::remove(folder_.path("hf/model.safetensors"));
  EXPECT_EQ(said(), "");
}

TEST_F(CheckWeights, RefusesScaledWeightsAndRemarksThemWhereNoneAreLoaded) {
  std::string text = print_hf_config(small_config(), DType::float32, 64, "");
  text.replace(text.find('{'), 1, R"({"quantization_config": {"quant_method": "fp8"},)");
  folder_.write("hf/config.json", text);
  EXPECT_EQ(said().substr(0, 54), "error model.hf_config: 'quantization_config': expected");

  config_.checkpoint.initial_load_in_hf = false;
  EXPECT_NE(said().find("\nmodel.hf_config: 'quantization_config' is not for the weights"),
            std::string::npos)
      << said();
}

TEST_F(CheckWeights, AnswersANameOfTheHub) {
  load_by_path();
  config_.checkpoint.initial_load_path = "Qwen/Qwen3-0.6B";
  const auto report = check();
  ASSERT_FALSE(report);
  ASSERT_EQ(report.error()[0].notes.size(), 1u);
  EXPECT_EQ(report.error()[0].code, "checkpoint.initial_load_path");
}

// A model of one's own has no config.json that could say what it is.
TEST_F(CheckWeights, ComparesNoModelOfALibrary) {
  load_by_path();
  config_.model = {};
  config_.model.name = "mine";
  config_.model.library = "mine.so";
  add("head.bias", at::ones({2}));
  EXPECT_EQ(said(), "checkpoint.unused_tensor: 1 tensor of 26 is not used: 'head.bias'\n");
}

}  // namespace
}  // namespace piper

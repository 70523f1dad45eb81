#include "runtime/models/qwen3_config.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace piper {
namespace {

Config with_flavor(const std::string& flavor) {
  Config config;
  config.model.flavor = flavor;
  return config;
}

// The only mistake of a configuration, as `code: message`.
std::string mistake(const Config& config) {
  const Expected<Qwen3Config> resolved = resolve_qwen3(config);
  if (resolved) {
    return "no mistake";
  }
  EXPECT_EQ(resolved.error().size(), 1u) << to_string(resolved.error());
  return resolved.error()[0].code + ": " + resolved.error()[0].message;
}

class ConfigJson : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Config with(const std::string& text) const {
    std::ofstream(folder_ / "config.json") << text;
    Config config;
    config.model.hf_assets_path = folder_.string();
    return config;
  }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() /
      ("piper_config_json_" +
       std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
};

// Hugging Face gives 751,632,384 for 0.6b where it counts the tied embedding twice: 596,049,920 +
// 151,936 * 1024.
TEST(Qwen3Config, FlavorsHaveThePublishedNumbersOfParameters) {
  EXPECT_EQ(resolve_qwen3(with_flavor("0.6b"))->parameters(), 596'049'920);
  EXPECT_EQ(resolve_qwen3(with_flavor("1.7b"))->parameters(), 1'720'574'976);
  EXPECT_EQ(resolve_qwen3(with_flavor("4b"))->parameters(), 4'022'468'096);
  EXPECT_EQ(resolve_qwen3(with_flavor("8b"))->parameters(), 8'190'735'360);
}

TEST(Qwen3Config, DebugIsBelowAMillionParametersAndReadsBytes) {
  const Qwen3Config debug = *resolve_qwen3(with_flavor("debug"));

  EXPECT_LT(debug.parameters(), 1'000'000);
  EXPECT_GE(debug.vocab, 257);
}

TEST(Qwen3Config, KeysWinOverTheFlavor) {
  Config config = with_flavor("0.6b");
  config.model.layers = 3;
  config.model.tied = false;

  const Qwen3Config resolved = *resolve_qwen3(config);

  EXPECT_EQ(resolved.layers, 3);
  EXPECT_FALSE(resolved.tied);
  EXPECT_EQ(resolved.dim, 1024);
}

TEST(Qwen3Config, DimAloneGivesHeadsOf64AndEightThirdsOfAFeedForward) {
  Config config;
  config.model.dim = 256;

  const Qwen3Config resolved = *resolve_qwen3(config);

  EXPECT_EQ(resolved.heads, 4);
  EXPECT_EQ(resolved.kv_heads, 4);
  EXPECT_EQ(resolved.head_dim, 64);
  EXPECT_EQ(resolved.ffn, 688);
}

TEST(Qwen3Config, RefusesAnUnknownFlavorAndNamesTheNearest) {
  EXPECT_EQ(mistake(with_flavor("debgu")),
            "model.flavor: unknown flavor 'debgu' (did you mean 'debug'?)");
}

TEST(Qwen3Config, RefusesHeadsThatKvHeadsDoNotDivideWhereTheyAreWritten) {
  Config config = with_flavor("debug");
  config.model.heads = 3;
  config.locations["model.heads"] = {"job.toml", 4, 9};

  const Expected<Qwen3Config> resolved = resolve_qwen3(config);

  ASSERT_FALSE(resolved);
  EXPECT_EQ(to_string(resolved.error()),
            "job.toml:4:9: error: heads: expected a multiple of kv_heads = 2, got 3 [model.heads]");
}

TEST(Qwen3Config, RefusesAnOddHeadDim) {
  Config config = with_flavor("debug");
  config.model.head_dim = 31;
  EXPECT_EQ(mistake(config), "model.head_dim: head_dim: expected an even number, got 31");
}

TEST(Qwen3Config, RefusesAVocabularyThatTextDoesNotFitIn) {
  Config config = with_flavor("debug");
  config.model.vocab = 256;
  EXPECT_EQ(mistake(config),
            "model.vocab: vocab: expected at least 257 for text (256 bytes and an end of "
            "document), got 256");
  config.training.dataset = Dataset::jsonl;
  EXPECT_EQ(mistake(config), "no mistake");
}

TEST(Qwen3Config, ReportsEveryBrokenRule) {
  Config config = with_flavor("debug");
  config.model.layers = -1;
  config.model.norm_eps = -1;
  EXPECT_EQ(resolve_qwen3(config).error().size(), 2u);
}

TEST_F(ConfigJson, GivesTheSizes) {
  Config config;
  config.model.hf_assets_path = PIPER_SOURCE_DIR "/tests/data/oracles/qwen3_tied";
  config.training.dataset = Dataset::jsonl;

  const Qwen3Config resolved = *resolve_qwen3(config);

  EXPECT_EQ(resolved, (Qwen3Config{.layers = 4,
                                   .dim = 48,
                                   .heads = 4,
                                   .kv_heads = 2,
                                   .head_dim = 16,
                                   .ffn = 96,
                                   .vocab = 256,
                                   .tied = true,
                                   .rope_theta = 1e6,
                                   .norm_eps = 1e-6,
                                   .init_deviation = 0.05,
                                   .hugging_face_float64 = true}));
}

TEST_F(ConfigJson, IsReadBackAsItIsWritten) {
  Qwen3Config written = *resolve_qwen3(with_flavor("debug"));

  const Config config = with(qwen3_config_json(written, DType::float32, ""));

  written.hugging_face_float64 = true;
  EXPECT_EQ(*resolve_qwen3(config), written);
}

TEST_F(ConfigJson, KeepsFieldsThatAreNotOurs) {
  const std::string text = qwen3_config_json(*resolve_qwen3(with_flavor("debug")), DType::bfloat16,
                                             R"({"bos_token_id": 151643, "vocab_size": 1})");
  EXPECT_NE(text.find("\"bos_token_id\": 151643"), std::string::npos);
  EXPECT_NE(text.find("\"vocab_size\": 257"), std::string::npos);
  EXPECT_NE(text.find("\"torch_dtype\": \"bfloat16\""), std::string::npos);
}

TEST_F(ConfigJson, IsRefusedWhereTheFolderHasNone) {
  Config config;
  config.model.hf_assets_path = "nowhere";
  EXPECT_EQ(mistake(config),
            "model.hf_assets_path: expected a folder with a config.json, got 'nowhere'");
}

TEST_F(ConfigJson, IsRefusedWithLineAndColumnWhereItIsNoJson) {
  const Expected<Qwen3Config> resolved =
      resolve_qwen3(with("{\n  \"hidden_size\": 48,\n  oops\n}"));

  ASSERT_FALSE(resolved);
  EXPECT_EQ(resolved.error()[0].where.line, 3u);
  EXPECT_EQ(resolved.error()[0].where.column, 3u);
  EXPECT_EQ(resolved.error()[0].message, "not JSON");
}

TEST_F(ConfigJson, IsRefusedWithEveryFieldThatIsMissingOfAnotherTypeOrNotSupported) {
  const Expected<Qwen3Config> resolved = resolve_qwen3(with(R"({
      "model_type": "qwen3_moe", "hidden_size": "48", "num_hidden_layers": 4,
      "num_attention_heads": 4, "intermediate_size": 96, "rope_scaling": {"type": "yarn"}})"));

  ASSERT_FALSE(resolved);
  std::vector<std::string> messages;
  for (const Diagnostic& diagnostic : resolved.error()) {
    messages.push_back(diagnostic.message);
  }
  EXPECT_EQ(messages, (std::vector<std::string>{
                          R"('model_type': expected "qwen3", got "qwen3_moe")",
                          R"('rope_scaling': expected null, got {"type":"yarn"})",
                          "'vocab_size' is missing",
                          R"('hidden_size': expected an integer, got "48")",
                      }));
}

TEST_F(ConfigJson, MayHaveItsThetaInRopeParameters) {
  const Config config =
      with(R"({"hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
      "intermediate_size": 96, "vocab_size": 300,
      "rope_parameters": {"rope_type": "default", "rope_theta": 5000}})");
  EXPECT_EQ(resolve_qwen3(config)->rope_theta, 5000);
}

}  // namespace
}  // namespace piper

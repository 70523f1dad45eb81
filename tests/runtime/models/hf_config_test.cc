#include "runtime/models/hf_config.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "runtime/models/hf_keys.h"
#include "runtime/models/qwen3_config.h"
#include "tests/runtime/data/fixture.h"

namespace piper {
namespace {

using nlohmann::json;
using testing::Folder;

constexpr const char* kDense = PIPER_SOURCE_DIR "/tests/data/oracles/qwen3_dense";

std::string read(const std::filesystem::path& file) {
  std::stringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

class HfConfigTest : public ::testing::Test {
 protected:
  // The smallest config.json, with these fields too.
  static json small(const json& more = json::object()) {
    json fields = {{"model_type", "qwen3"},    {"hidden_size", 64},       {"num_hidden_layers", 2},
                   {"num_attention_heads", 4}, {"intermediate_size", 96}, {"vocab_size", 300},
                   {"num_key_value_heads", 2}, {"head_dim", 16}};
    fields.update(more);
    return fields;
  }
  Expected<HfConfig> read_text(const std::string& text) const {
    folder_.write("config.json", text);
    return read_hf_config(folder_.path());
  }
  Expected<HfConfig> read_fields(const json& more) const { return read_text(small(more).dump()); }

  // What is said of these fields: `'key': message` of each error.
  std::vector<std::string> mistakes(const json& more) const {
    const auto config = read_fields(more);
    std::vector<std::string> messages;
    for (const Diagnostic& one : config ? Diagnostics() : config.error()) {
      EXPECT_EQ(one.code, "model.hf_config");
      messages.push_back(one.message);
    }
    return messages;
  }
  std::string mistake(const json& more) const {
    const auto all = mistakes(more);
    EXPECT_LE(all.size(), 1u);
    return all.empty() ? "none" : all[0];
  }

  Folder folder_;
};

TEST_F(HfConfigTest, GivesTheModel) {
  const auto config = read_hf_config(PIPER_SOURCE_DIR "/tests/data/oracles/qwen3_tied");

  ASSERT_TRUE(config.has_value()) << to_string(config.error());
  EXPECT_EQ(config->model, (Qwen3Config{.layers = 4,
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
  EXPECT_EQ(config->positions, 512);
  EXPECT_EQ(to_string(config->remarks), "");
}

// What transformers writes of Qwen3, with every default and in several versions, and what Qwen
// published: tests/data/hugging_face/README.md.
TEST_F(HfConfigTest, TakesWhatTransformersAndQwenWrite) {
  int files = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(PIPER_SOURCE_DIR "/tests/data/hugging_face")) {
    if (file.path().extension() != ".json") {
      continue;
    }
    const auto config = read_text(read(file.path()));
    EXPECT_TRUE(config.has_value()) << file.path() << '\n' << to_string(config.error());
    EXPECT_EQ(config ? to_string(config->remarks) : "", "") << file.path();
    ++files;
  }
  EXPECT_GE(files, 5);
}

TEST_F(HfConfigTest, IsRefusedWithLineAndColumnWhereItIsNoJson) {
  const auto config = read_text("{\n  \"hidden_size\": 48,\n  oops\n}");

  ASSERT_FALSE(config);
  EXPECT_EQ(config.error()[0].where.line, 3u);
  EXPECT_EQ(config.error()[0].where.column, 3u);
  EXPECT_EQ(config.error()[0].message.find("not JSON: syntax error while parsing object key"), 0u)
      << config.error()[0].message;
}

TEST_F(HfConfigTest, IsRefusedWhereItIsAnotherModelWithoutAWordOnThatModelsKeys) {
  EXPECT_EQ(mistakes({{"model_type", "qwen3_moe"}, {"num_experts", 128}}),
            std::vector<std::string>{R"('model_type': expected "qwen3", got "qwen3_moe")"});
}

TEST_F(HfConfigTest, RefusesEveryKeyThatItDoesNotKnowAtItsLine) {
  const auto config = read_text(
      "{\"hidden_size\": 64, \"num_hidden_layers\": 2,\n"
      "\"num_attention_heads\": 4, \"intermediate_size\": 96,\n"
      "\"vocab_size\": 300, \"note\": {\"is_causal\": 1, \"s\": \"}\\\"\"},\n"
      "  \"is_causal\": false, \"attn_scale\": 0.5}");

  ASSERT_FALSE(config);
  const std::string file = folder_.path("config.json");
  EXPECT_EQ(to_string(config.error()),
            file +
                ":3:20: error: 'note': expected none of that name, got "
                "{\"is_causal\":1,\"s\":\"}\\\"\"}; it may change what the model computes (take it "
                "out where it does not) [model.hf_config]\n" +
                file + ":4:3: error: 'is_causal': expected true, got false [model.hf_config]\n" +
                file +
                ":4:23: error: 'attn_scale': expected none of that name, got 0.5; it may "
                "change what the model computes (take it out where it does not) "
                "[model.hf_config]");
}

TEST_F(HfConfigTest, TakesKeysThatAreNull) {
  EXPECT_EQ(mistake({{"is_causal", nullptr}, {"anything", nullptr}, {"rope_scaling", nullptr}}),
            "none");
}

// Every key of the table is taken with the value that it may have, and no other.
TEST_F(HfConfigTest, HoldsEveryKeyToItsRule) {
  for (const HfKey& key : hf_keys()) {
    const std::string name(key.name);
    if (key.use == HfUse::ignored) {
      EXPECT_EQ(mistake({{name, "anything"}}), "none") << name;
    } else if (key.use == HfUse::only) {
      EXPECT_EQ(mistake({{name, json::parse(key.only)}}), "none") << name;
      const auto refused = mistakes({{name, "another"}});
      ASSERT_FALSE(refused.empty()) << name;
      EXPECT_EQ(refused[0],
                "'" + name + "': expected " + std::string(key.only) + ", got \"another\"");
    } else if (name != "quantization_config" && name != "pad_token_id") {
      EXPECT_NE(mistake({{name, "a text"}}), "none") << name;
    }
  }
}

TEST_F(HfConfigTest, RefusesWhatIsMissingOrOfAnotherType) {
  const auto config = read_text(R"({"hidden_size": "48", "num_hidden_layers": 4,
      "num_attention_heads": 4, "intermediate_size": 96})");

  ASSERT_FALSE(config);
  ASSERT_EQ(config.error().size(), 2u);
  EXPECT_EQ(config.error()[0].message, "'vocab_size' is missing");
  EXPECT_EQ(config.error()[1].message, R"('hidden_size': expected an integer, got "48")");
  EXPECT_EQ(config.error()[1].where.line, 1u);
}

TEST_F(HfConfigTest, ReadsThetaAtEachOfItsPlaces) {
  const json theta = {{"rope_type", "default"}, {"rope_theta", 5000}};
  EXPECT_EQ(read_fields(json::object())->model.rope_theta, 10000);
  EXPECT_EQ(read_fields({{"rope_theta", 5000}})->model.rope_theta, 5000);
  EXPECT_EQ(read_fields({{"rope_parameters", theta}})->model.rope_theta, 5000);
  EXPECT_EQ(read_fields({{"rope_scaling", theta}})->model.rope_theta, 5000);
  EXPECT_EQ(read_fields({{"rope_theta", 5000}, {"rope_scaling", {{"type", "default"}}}})
                ->model.rope_theta,
            5000);
  EXPECT_EQ(read_fields({{"rope_theta", 5000}, {"rope_parameters", theta}})->model.rope_theta,
            5000);
}

TEST_F(HfConfigTest, RefusesPlacesOfThetaThatDisagree) {
  EXPECT_EQ(
      mistake({{"rope_theta", 1e6}, {"rope_parameters", {{"rope_theta", 5000}}}}),
      "'rope_parameters': expected one rope_theta, got 5000.0 here and 1000000.0 at its other "
      "place");
}

TEST_F(HfConfigTest, RefusesOtherFrequencies) {
  EXPECT_EQ(mistakes({{"rope_scaling", {{"type", "yarn"}, {"factor", 4.0}}}}),
            (std::vector<std::string>{
                "'rope_scaling': 'factor': expected none of that name, got 4.0; it may change what "
                "the model computes (take it out where it does not)",
                R"('rope_scaling': 'type': expected "default", got "yarn")"}));
}

TEST_F(HfConfigTest, RefusesAttentionToAWindow) {
  EXPECT_EQ(mistake({{"layer_types", {"full_attention", "sliding_attention"}}}),
            "'layer_types': expected \"full_attention\" for every layer, got "
            "[\"full_attention\",\"sliding_attention\"]");
}

TEST_F(HfConfigTest, RemarksWhatMaySurprise) {
  json fields = small({{"layer_types", {"full_attention"}}, {"pad_token_id", 7}});
  fields.erase("num_key_value_heads");
  const auto config = read_text(fields.dump());

  ASSERT_TRUE(config.has_value()) << to_string(config.error());
  ASSERT_EQ(config->remarks.size(), 3u) << to_string(config->remarks);
  EXPECT_EQ(config->remarks[0].message,
            "'layer_types' has 1 entries for 2 layers; transformers refuses that");
  EXPECT_NE(config->remarks[1].message.find("taken as num_attention_heads = 4"), std::string::npos);
  EXPECT_NE(config->remarks[2].message.find("row 7 of the embedding"), std::string::npos);
}

// The tables of docs/hugging_face.md.
TEST_F(HfConfigTest, IsDocumentedKeyByKey) {
  std::string used, only;
  std::map<std::string, std::string> ignored;  // keys by reason
  for (const HfKey& key : hf_keys()) {
    const std::string name = "`" + std::string(key.name) + "`";
    if (key.use == HfUse::used) {
      used += "| " + name + " | " + std::string(key.why) + " |\n";
    } else if (key.use == HfUse::only) {
      only += "| " + name + " | `" + std::string(key.only) + "` | " + std::string(key.why) + " |\n";
    } else {
      std::string& keys = ignored[std::string(key.why)];
      keys += (keys.empty() ? "" : ", ") + name;
    }
  }
  std::string reasons;
  for (const auto& [why, keys] : ignored) {
    reasons += "| " + why + " | " + keys + " |\n";
  }

  const std::string docs = read(PIPER_SOURCE_DIR "/docs/hugging_face.md");

  for (const std::string& table : {used, only, reasons}) {
    EXPECT_NE(docs.find(table), std::string::npos) << "expected in docs/hugging_face.md:\n"
                                                   << table;
  }
}

// ---- what is written ----

TEST_F(HfConfigTest, IsReadBackAsItIsWritten) {
  Config job;
  job.model.flavor = "debug";
  Qwen3Config written = *resolve_qwen3(job);

  const auto config = read_text(print_hf_config(written, DType::float32, 128, ""));

  ASSERT_TRUE(config.has_value()) << to_string(config.error());
  written.hugging_face_float64 = true;
  EXPECT_EQ(config->model, written);
  EXPECT_EQ(config->positions, 128);
  EXPECT_EQ(to_string(config->remarks), "");
}

// Another model than the folder's: nothing of the folder contradicts it.
TEST_F(HfConfigTest, SaysWhatWasTrainedInEverySpelling) {
  const Qwen3Config trained{.layers = 1,
                            .dim = 32,
                            .heads = 2,
                            .kv_heads = 1,
                            .head_dim = 8,
                            .ffn = 24,
                            .vocab = 257,
                            .tied = true,
                            .rope_theta = 777,
                            .norm_eps = 1e-5,
                            .init_deviation = 0.5};
  const json old = {{"layer_types", {"full_attention", "full_attention"}},
                    {"dtype", "bfloat16"},
                    {"torch_dtype", "float16"},
                    {"rope_theta", 1.0},
                    {"rope_scaling", {{"rope_type", "default"}, {"rope_theta", 1.0}}},
                    {"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 1.0}}},
                    {"quantization_config", {{"quant_method", "fp8"}}},
                    {"max_position_embeddings", 16},
                    {"pad_token_id", 257},
                    {"eos_token_id", 151643},
                    {"transformers_version", "5.24.0"},
                    {"note", "kept"}};

  const json saved = json::parse(print_hf_config(trained, DType::float32, 64, small(old).dump()));

  const json expected = {{"architectures", {"Qwen3ForCausalLM"}},
                         {"model_type", "qwen3"},
                         {"hidden_act", "silu"},
                         {"attention_bias", false},
                         {"num_hidden_layers", 1},
                         {"hidden_size", 32},
                         {"num_attention_heads", 2},
                         {"num_key_value_heads", 1},
                         {"head_dim", 8},
                         {"intermediate_size", 24},
                         {"vocab_size", 257},
                         {"tie_word_embeddings", true},
                         {"rms_norm_eps", 1e-5},
                         {"initializer_range", 0.5},
                         {"rope_theta", 777.0},
                         {"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 777.0}}},
                         {"rope_scaling", nullptr},
                         {"layer_types", {"full_attention"}},
                         {"dtype", "float32"},
                         {"torch_dtype", "float32"},
                         {"max_position_embeddings", 64},
                         {"pad_token_id", nullptr},
                         {"eos_token_id", 151643},
                         {"transformers_version", "5.24.0"},
                         {"note", "kept"}};
  EXPECT_EQ(saved, expected) << json::diff(expected, saved).dump(1);
}

TEST_F(HfConfigTest, KeepsTheSpellingOfTheElementType) {
  const auto saved = [](const json& old) {
    return json::parse(print_hf_config({}, DType::bfloat16, 64, old.dump()));
  };
  EXPECT_FALSE(saved({{"dtype", "float32"}}).contains("torch_dtype"));
  EXPECT_FALSE(saved({{"torch_dtype", "float32"}}).contains("dtype"));
  EXPECT_EQ(saved({{"torch_dtype", "float32"}})["torch_dtype"], "bfloat16");
  EXPECT_EQ(saved(json::object())["dtype"], saved(json::object())["torch_dtype"]);
}

TEST_F(HfConfigTest, SavesWhatItReadAsItWas) {
  const json old = json::parse(read(std::string(kDense) + "/config.json"));
  const auto config = read_hf_config(kDense);

  json saved = json::parse(print_hf_config(config->model, DType::float32, 24, old.dump()));

  EXPECT_EQ(saved["dtype"], "float32");
  for (const char* added : {"architectures", "dtype", "torch_dtype", "rope_parameters"}) {
    saved.erase(added);
  }
  EXPECT_EQ(saved, old) << json::diff(old, saved).dump(1);
}

// ---- beside what the job says ----

class BesideTheJob : public HfConfigTest {
 protected:
  Config job() const {
    Config config;
    config.model.hf_assets_path = folder_.path();
    config.training.dataset = Dataset::jsonl;
    return config;
  }
  void write(const json& more = json::object()) const {
    folder_.write("config.json", small(more).dump());
  }
};

TEST_F(BesideTheJob, KeysWinOverTheFolder) {
  write();
  Config config = job();
  config.model.layers = 1;

  EXPECT_EQ(resolve_qwen3(config)->layers, 1);
  EXPECT_EQ(resolve_qwen3(config)->dim, 64);
}

TEST_F(BesideTheJob, AFlavorThatIsTheFoldersGivesTheSameNumbersAsNone) {
  const Qwen3Config debug = *resolve_qwen3([] {
    Config config;
    config.model.flavor = "debug";
    return config;
  }());
  folder_.write("config.json", print_hf_config(debug, DType::float32, 128, ""));
  Config with = job();
  with.model.flavor = "debug";

  EXPECT_EQ(*resolve_qwen3(with), *resolve_qwen3(job()));
}

TEST_F(BesideTheJob, AFlavorOfAnotherModelIsRefusedWithEveryDifference) {
  Qwen3Config debug = *resolve_qwen3([] {
    Config config;
    config.model.flavor = "debug";
    return config;
  }());
  debug.rope_theta = 5e6;
  debug.norm_eps = 1e-5;
  folder_.write("config.json", print_hf_config(debug, DType::float32, 128, ""));
  Config config = job();
  config.model.flavor = "debug";
  config.locations["model.flavor"] = {"job.toml", 3, 1};

  const auto model = resolve_qwen3(config);

  ASSERT_FALSE(model);
  EXPECT_EQ(
      to_string(model.error()[0]).substr(0, to_string(model.error()[0]).find('\n')),
      "job.toml:3:1: error: expected the model of " + folder_.path("config.json") +
          ", got flavor 'debug' with rope_theta = 10000.0 (there 5000000.0), norm_eps = 1e-06 "
          "(there 1e-05) [model.other_folder]");
}

TEST_F(BesideTheJob, ADifferenceOfAFlavorThatAKeySaysIsTaken) {
  Qwen3Config debug = *resolve_qwen3([] {
    Config config;
    config.model.flavor = "debug";
    return config;
  }());
  debug.rope_theta = 5e6;
  folder_.write("config.json", print_hf_config(debug, DType::float32, 128, ""));
  Config config = job();
  config.model.flavor = "debug";
  config.model.rope_theta = 10000;

  ASSERT_TRUE(resolve_qwen3(config));
  EXPECT_EQ(resolve_qwen3(config)->rope_theta, 10000);
}

TEST_F(BesideTheJob, AFlavorTakesAFolderThatHoldsATokenizerAlone) {
  folder_.write("tokenizer.json", "{}");
  Config config = job();
  config.model.flavor = "debug";
  EXPECT_TRUE(resolve_qwen3(config));
}

TEST_F(BesideTheJob, AFolderThatIsNotThereIsRefused) {
  Config config;
  config.model.hf_assets_path = "nowhere";
  EXPECT_EQ(resolve_qwen3(config).error()[0].message,
            "expected a folder with a config.json, got 'nowhere', which is not there");
  config.model.flavor = "debug";
  EXPECT_EQ(resolve_qwen3(config).error()[0].message,
            "expected a folder, got 'nowhere', which is not there");
}

TEST_F(BesideTheJob, ANameOfTheHubIsAnsweredWithHowToFetchIt) {
  Config config;
  config.model.hf_assets_path = "Qwen/Qwen3-0.6B";

  const Diagnostic said = resolve_qwen3(config).error()[0];

  ASSERT_EQ(said.notes.size(), 1u);
  EXPECT_NE(said.notes[0].message.find("hf download Qwen/Qwen3-0.6B --local-dir Qwen3-0.6B"),
            std::string::npos);
  for (const char* path : {"Qwen/Qwen3/0.6B", "/Qwen/Qwen3", "./Qwen3", "../Qwen3", "Qwen3-0.6B"}) {
    config.model.hf_assets_path = path;
    EXPECT_TRUE(resolve_qwen3(config).error()[0].notes.empty()) << path;
  }
}

}  // namespace
}  // namespace piper

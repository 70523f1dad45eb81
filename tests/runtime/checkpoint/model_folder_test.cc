#include "runtime/checkpoint/model_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "runtime/checkpoint/hf.h"
#include "tests/runtime/checkpoint/small_model.h"

namespace piper {
namespace {

namespace fs = std::filesystem;
using testing::Folder;
using testing::graph_of;
using testing::small_config;
using testing::small_weights;
using testing::Tensors;

std::string read(const fs::path& file) {
  std::stringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

class ModelFolder : public ::testing::Test {
 protected:
  std::string path(const std::string& name = "") const { return folder_.path("model/" + name); }

  std::set<std::string> names() const {
    std::set<std::string> all;
    for (const auto& entry : fs::directory_iterator(path())) {
      all.insert(entry.path().filename());
    }
    return all;
  }

  // The old model: weights of 1, in one file or in two that an index names.
  void write_old(bool several) const {
    folder_.write("model/config.json", "old");
    folder_.write("model/README.md", "kept");
    if (!several) {
      ASSERT_TRUE(save_weights(path("model.safetensors"), old_));
      return;
    }
    ASSERT_TRUE(save_weights(path("model-00001-of-00002.safetensors"), {{"a", old_.at("a")}}));
    ASSERT_TRUE(save_weights(path("model-00002-of-00002.safetensors"), {{"b", old_.at("b")}}));
    folder_.write("model/model.safetensors.index.json",
                  R"({"metadata": {}, "weight_map": {"a": "model-00001-of-00002.safetensors",
                      "b": "model-00002-of-00002.safetensors"}})");
  }

  // What Piper and transformers make of the folder: both want config.json, then take the weights'
  // one file, or those of the index. "old", "new", "refused"; anything else is a mixture.
  std::string loads_as() const {
    if (!fs::exists(path("config.json"))) {
      return "refused";
    }
    const auto weights = load_weights(path(), graph_of(old_));
    if (!weights) {
      return "refused";
    }
    const std::string config = read(path("config.json"));
    std::string loaded;
    for (const auto& [name, tensor] : *weights) {
      loaded += at::equal(tensor, old_.at(name))   ? "old "
                : at::equal(tensor, new_.at(name)) ? "new "
                                                   : "? ";
    }
    return loaded == config + ' ' + config + ' ' ? config : config + " with " + loaded;
  }

  WriteWeights write_new() const {
    return [this](OutputFile& file) { return write_tensors(file, new_); };
  }

  static OutputOptions options() { return {.code = "checkpoint.write"}; }

  Folder folder_;
  const Tensors old_{{"a", at::full({3}, 1.0)}, {"b", at::full({2, 2}, 1.0)}};
  const Tensors new_{{"a", at::full({3}, 2.0)}, {"b", at::full({2, 2}, 2.0)}};
  const ModelFiles files_{"new", {{"tokenizer.json", "{}"}, {"generation_config.json", "{}"}}};
};

TEST_F(ModelFolder, MakesAFolderWithAllOfAModel) {
  ASSERT_TRUE(replace_model(path(), files_, write_new(), options()));

  EXPECT_EQ(names(), (std::set<std::string>{"config.json", "model.safetensors", "tokenizer.json",
                                            "generation_config.json"}));
  EXPECT_EQ(loads_as(), "new");
}

TEST_F(ModelFolder, LeavesNoIndexThatNamesOldFiles) {
  write_old(/*several=*/true);

  ASSERT_TRUE(replace_model(path(), {"new", {}}, write_new(), options()));

  EXPECT_EQ(names(), (std::set<std::string>{"config.json", "model.safetensors", "README.md"}));
  EXPECT_EQ(loads_as(), "new");
  EXPECT_EQ(read(path("README.md")), "kept");
}

TEST_F(ModelFolder, RemovesNothingThatAnIndexNamesElsewhere) {
  write_old(/*several=*/false);
  folder_.write("other.safetensors", "kept");
  folder_.write("model/notes.txt", "kept");
  folder_.write("model/model.safetensors.index.json",
                R"({"weight_map": {"a": "../other.safetensors", "b": "model.safetensors",
                    "c": "notes.txt", "d": "config.json", "e": 1, "f": ".", "g": ""}})");

  ASSERT_TRUE(replace_model(path(), {"new", {}}, write_new(), options()));

  EXPECT_EQ(loads_as(), "new");
  EXPECT_EQ(read(path("notes.txt")), "kept");
  EXPECT_EQ(read(folder_.path("other.safetensors")), "kept");
}

// Stops before each step: the folder loads as the old model or the new one, or is refused.
TEST_F(ModelFolder, IsOldOrNewOrRefusedWhereverItStops) {
  for (const bool several : {false, true}) {
    for (std::size_t stop = 0;; ++stop) {
      SCOPED_TRACE((several ? "several files, stopped before step " : "one file, step ") +
                   std::to_string(stop));
      fs::remove_all(path());
      write_old(several);
      std::size_t steps = 0;
      {
        auto replacement = ModelReplacement::stage(path(), files_, write_new(), options());
        ASSERT_TRUE(replacement.has_value()) << to_string(replacement.error());
        steps = replacement->steps();
        for (std::size_t step = 0; step < stop; ++step) {
          ASSERT_TRUE(replacement->step(step));
        }
        const std::string now = loads_as();
        EXPECT_TRUE(now == "refused" || now == (stop < 4 ? "old" : "new")) << now;
        EXPECT_EQ(stop <= 2, now == "old") << now;
      }
      EXPECT_EQ(read(path("README.md")), "kept");

      // The next save ends it.
      ASSERT_TRUE(replace_model(path(), files_, write_new(), options()));
      EXPECT_EQ(loads_as(), "new");
      EXPECT_EQ(names(), (std::set<std::string>{"config.json", "model.safetensors", "README.md",
                                                "tokenizer.json", "generation_config.json"}));
      if (stop == steps) {
        EXPECT_EQ(steps, several ? 7u : 5u);
        break;
      }
    }
  }
}

// Weights alone change: the folder is never refused.
TEST_F(ModelFolder, StaysLoadableWhereTheConfigIsTheSame) {
  write_old(/*several=*/true);
  auto replacement = ModelReplacement::stage(path(), {"old", {}}, write_new(), options());
  ASSERT_TRUE(replacement.has_value());
  for (std::size_t step = 0; step < replacement->steps(); ++step) {
    ASSERT_TRUE(replacement->step(step));
    EXPECT_EQ(loads_as(), "old with new new ");
  }
}

TEST_F(ModelFolder, ReplacesLinksAndLeavesWhatTheyLeadTo) {
  write_old(/*several=*/true);
  fs::create_directories(folder_.path("blobs"));
  std::map<std::string, std::string> blobs;
  for (const std::string& name : names()) {
    fs::rename(path(name), folder_.path("blobs/" + name));
    fs::create_symlink("../blobs/" + name, path(name));
    blobs[name] = read(path(name));
  }
  folder_.write("blobs/model.safetensors", "shared");
  fs::create_symlink("../blobs/model.safetensors", path("model.safetensors"));

  ASSERT_TRUE(replace_model(path(), {"new", {}}, write_new(), options()));

  EXPECT_EQ(loads_as(), "new");
  EXPECT_FALSE(fs::is_symlink(path("config.json")));
  EXPECT_FALSE(fs::is_symlink(path("model.safetensors")));
  EXPECT_TRUE(fs::is_symlink(path("README.md")));
  EXPECT_EQ(read(folder_.path("blobs/model.safetensors")), "shared");
  for (const auto& [name, text] : blobs) {
    EXPECT_EQ(read(folder_.path("blobs/" + name)), text) << name;
  }
}

TEST_F(ModelFolder, KeepsATokenizerThatIsThere) {
  folder_.write("model/vocab.json", "another");
  ASSERT_TRUE(replace_model(path(), files_, write_new(), options()));
  EXPECT_EQ(names(), (std::set<std::string>{"config.json", "model.safetensors", "vocab.json",
                                            "generation_config.json"}));
}

TEST_F(ModelFolder, CompletesATokenizerOfWhichAPartIsThere) {
  folder_.write("model/tokenizer.json", "{}");
  ASSERT_TRUE(replace_model(path(), {"new", {{"tokenizer.json", "{}"}, {"merges.txt", "a b"}}},
                            write_new(), options()));
  EXPECT_EQ(read(path("merges.txt")), "a b");
}

TEST_F(ModelFolder, LeavesAConfigOfAModelThatWritesNone) {
  folder_.write("model/config.json", "mine");
  ASSERT_TRUE(replace_model(path(), {"", {}}, write_new(), options()));
  EXPECT_EQ(read(path("config.json")), "mine");
}

TEST_F(ModelFolder, IsAsItWasWhereItCannotBeWritten) {
  write_old(/*several=*/false);
  fs::create_directories(path("in_the_way"));
  fs::rename(path("model.safetensors"), path("old.safetensors"));
  fs::rename(path("in_the_way"), path("model.safetensors"));

  const Status status = replace_model(path(), files_, write_new(), options());

  ASSERT_FALSE(status);
  EXPECT_EQ(status.error()[0].code, "checkpoint.write");
  EXPECT_EQ(names(), (std::set<std::string>{"config.json", "model.safetensors", "README.md",
                                            "old.safetensors"}));
  EXPECT_EQ(read(path("config.json")), "old");
}

// ---- what a job takes along ----

class ModelFilesOfAJob : public ::testing::Test {
 protected:
  ModelFilesOfAJob() {
    testing::write_model(folder_, "hf", small_config(), small_weights(small_config(), 1));
    std::string text = read(folder_.path("hf/config.json"));
    text.replace(text.find('{'), 1, "{\"eos_token_id\": 7,");
    folder_.write("hf/config.json", text);
    folder_.write("hf/tokenizer.json", "{}");
    folder_.write("hf/generation_config.json", "{\"top_k\": 3}");
    folder_.write("hf/README.md", "stays");
    config_.training.dataset = Dataset::jsonl;
    config_.training.seq_len = 16;
  }
  Folder folder_;
  Config config_;
};

TEST_F(ModelFilesOfAJob, AreOfTheFolderThatItStartsFrom) {
  for (const bool by_path : {false, true}) {
    const std::string source = folder_.path("hf");
    config_.model.hf_assets_path = by_path ? "" : source;
    config_.checkpoint.initial_load_path = by_path ? source : "";

    const auto files = read_model_files(config_);

    ASSERT_TRUE(files.has_value()) << to_string(files.error());
    EXPECT_EQ(files->companions,
              (std::map<std::string, std::string>{{"generation_config.json", "{\"top_k\": 3}"},
                                                  {"tokenizer.json", "{}"}}));
    EXPECT_NE(files->config.find("\"eos_token_id\": 7"), std::string::npos);
  }
}

TEST_F(ModelFilesOfAJob, SayWhatTheJobTrains) {
  config_.model.hf_assets_path = folder_.path("hf");
  config_.model.layers = 1;
  config_.training.dtype = DType::bfloat16;

  const std::string text = read_model_files(config_)->config;

  EXPECT_NE(text.find("\"num_hidden_layers\": 1"), std::string::npos) << text;
  EXPECT_NE(text.find("\"dtype\": \"bfloat16\""), std::string::npos) << text;
}

TEST_F(ModelFilesOfAJob, AreNoneWhereItStartsFromNoFolder) {
  const auto files = read_model_files(config_);
  EXPECT_TRUE(files->companions.empty());
  EXPECT_NE(files->config.find("Qwen3ForCausalLM"), std::string::npos);
}

TEST_F(ModelFilesOfAJob, HaveNoConfigForAModelOfALibrary) {
  config_.model.name = "mine";
  config_.model.library = "mine.so";
  config_.model.hf_assets_path = folder_.path("hf");
  EXPECT_EQ(read_model_files(config_)->config, "");
  EXPECT_EQ(read_model_files(config_)->companions.size(), 2u);
}

}  // namespace
}  // namespace piper

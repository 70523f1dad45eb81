#include "runtime/checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "runtime/checkpoint/check_weights.h"
#include "runtime/checkpoint/hf.h"
#include "runtime/model/build.h"
#include "runtime/models/find_model.h"

namespace piper {
namespace {

namespace fs = std::filesystem;

class Safetensors : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name = "model.safetensors") const {
    return (folder_ / name).string();
  }

  // A file with this header and this many bytes of tensors.
  std::string write(const std::string& header, std::size_t bytes,
                    const std::string& name = "model.safetensors") const {
    std::ofstream stream(path(name), std::ios::binary);
    const std::uint64_t length = header.size();
    stream.write(reinterpret_cast<const char*>(&length), sizeof length);
    stream << header << std::string(bytes, '\0');
    return path(name);
  }

  // What load_weights says of the file, without its folder.
  std::string refusal(const ModelGraph& model) const {
    const auto loaded = load_weights(folder_.string(), model);
    if (loaded) {
      return "loaded";
    }
    std::string text = to_string(loaded.error());
    for (std::size_t at; (at = text.find(folder_.string())) != std::string::npos;) {
      text.replace(at, folder_.string().size(), "DIR");
    }
    return text;
  }

  static ModelGraph model(const std::vector<std::int64_t>& shape = {2, 2},
                          DType dtype = DType::float32) {
    ModelGraph graph;
    graph.parameters.push_back({"w", dtype, shape, false, {}});
    return graph;
  }

  const fs::path folder_ =
      fs::temp_directory_path() /
      ("piper_safetensors_" +
       std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
};

TEST_F(Safetensors, ReadsWhatItWrites) {
  const std::map<std::string, at::Tensor> written{
      {"a", at::randn({3, 5})},
      {"b", at::randn({4}, at::kDouble)},
      {"c", at::randn({2, 2}).to(at::kBFloat16)},
      {"empty", at::empty({0, 3})},
      {"scalar", at::ones({})},
      {"turned", at::randn({3, 2}).t()},
  };

  ASSERT_TRUE(save_weights(path(), written));
  const auto read = load_tensors(path());

  ASSERT_TRUE(read) << to_string(read.error());
  ASSERT_EQ(read->size(), written.size());
  for (const auto& [name, tensor] : written) {
    EXPECT_TRUE(at::equal(read->at(name), tensor)) << name;
    EXPECT_EQ(read->at(name).scalar_type(), tensor.scalar_type()) << name;
  }
}

TEST_F(Safetensors, WritesAHeaderOfAMultipleOf8BytesWithTheFormatOfPyTorch) {
  ASSERT_TRUE(save_weights(path(), {{"w", at::ones({2})}}));

  std::ifstream stream(path(), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  EXPECT_EQ(length % 8, 0u);
  EXPECT_EQ(bytes.size(), 8 + length + 8);
  const std::string header = bytes.substr(8, length);
  EXPECT_EQ(
      header.substr(0, header.find_last_not_of(' ') + 1),
      R"({"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})");
}

TEST_F(Safetensors, ConvertsToTheTypeOfMasterCopies) {
  const at::Tensor weight = at::randn({2, 2}, at::kDouble);
  ASSERT_TRUE(save_weights(path(), {{"w", weight}}));

  const auto narrow = load_weights(folder_.string(), model({2, 2}, DType::bfloat16));
  const auto wide = load_weights(folder_.string(), model({2, 2}, DType::float64));

  EXPECT_TRUE(at::equal(narrow->at("w"), weight.to(at::kFloat)));
  EXPECT_TRUE(at::equal(wide->at("w"), weight));
}

TEST_F(Safetensors, ReadsSeveralFilesByTheirIndex) {
  ASSERT_TRUE(save_weights(path("part-1.safetensors"), {{"v", at::ones({2})}}));
  ASSERT_TRUE(save_weights(path("part-2.safetensors"), {{"w", at::full({2, 2}, 3, at::kFloat)}}));
  std::ofstream(path("model.safetensors.index.json"))
      << R"({"weight_map": {"v": "part-1.safetensors", "w": "part-2.safetensors"}})";

  const auto read = load_weights(folder_.string(), model());

  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(read->at("w")[1][1].item<float>(), 3);
}

TEST_F(Safetensors, RefusesAnIndexThatPromisesATensorThatIsNotThere) {
  ASSERT_TRUE(save_weights(path("part.safetensors"), {{"v", at::ones({2})}}));
  std::ofstream(path("model.safetensors.index.json"))
      << R"({"weight_map": {"w": "part.safetensors"}})";
  EXPECT_EQ(refusal(model()),
            "DIR/part.safetensors: error: tensor 'w' is missing; the index says it is here "
            "[checkpoint.safetensors]");
}

TEST_F(Safetensors, RefusesAnIndexThatLeavesItsFolder) {
  std::ofstream(path("model.safetensors.index.json"))
      << R"({"weight_map": {"w": "../../w.safetensors"}})";
  EXPECT_EQ(refusal(model()),
            "DIR/model.safetensors.index.json: error: tensor 'w': expected a file of the same "
            "folder, got \"../../w.safetensors\" [checkpoint.safetensors]");
}

TEST_F(Safetensors, RefusesAFolderWithoutOne) {
  EXPECT_EQ(refusal(model()),
            "DIR: error: expected model.safetensors or model.safetensors.index.json in it "
            "[checkpoint.safetensors]");
}

TEST_F(Safetensors, RefusesAFileThatIsCutShort) {
  ASSERT_TRUE(save_weights(path(), {{"w", at::ones({2, 2})}}));
  fs::resize_file(path(), fs::file_size(path()) - 1);
  EXPECT_EQ(refusal(model()),
            "DIR/model.safetensors: error: truncated: tensor 'w' ends at byte 16 of 15 bytes of "
            "tensors [checkpoint.safetensors]");
}

TEST_F(Safetensors, RefusesAFileThatIsCutInItsHeader) {
  ASSERT_TRUE(save_weights(path(), {{"w", at::ones({2, 2})}}));
  fs::resize_file(path(), 20);
  EXPECT_NE(refusal(model()).find("truncated: expected a header of 88 bytes, got 12"),
            std::string::npos)
      << refusal(model());
  fs::resize_file(path(), 3);
  EXPECT_NE(refusal(model()).find("truncated: expected at least 8 bytes, got 3"),
            std::string::npos);
}

TEST_F(Safetensors, RefusesAHugeHeader) {
  std::ofstream(path()) << "this is no safetensors file";
  EXPECT_NE(refusal(model()).find("expected a header of at most 100000000 bytes, got "),
            std::string::npos);
}

TEST_F(Safetensors, RefusesAHeaderThatIsNoJson) {
  write("{\"w\": ", 0);
  EXPECT_NE(refusal(model()).find("expected a header that is a JSON object"), std::string::npos);
}

TEST_F(Safetensors, RefusesTensorsThatOverlap) {
  write(R"({"v":{"dtype":"F32","shape":[2,2],"data_offsets":[8,24]},)"
        R"("w":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}})",
        24);
  EXPECT_EQ(refusal(model()),
            "DIR/model.safetensors: error: tensors 'w' and 'v' overlap [checkpoint.safetensors]");
}

TEST_F(Safetensors, RefusesOffsetsThatContradictTheShape) {
  write(R"({"w":{"dtype":"F32","shape":[2,2],"data_offsets":[0,12]}})", 12);
  EXPECT_EQ(refusal(model()),
            "DIR/model.safetensors: error: tensor 'w': expected 16 bytes for F32 [2,2], got "
            "data_offsets [0,12] [checkpoint.safetensors]");
}

TEST_F(Safetensors, RefusesShapesWhoseSizeOverflows) {
  write(R"({"w":{"dtype":"F32","shape":[4294967296,4294967296,4],"data_offsets":[0,0]}})", 0);
  EXPECT_NE(refusal(model()).find("expected a shape of counts"), std::string::npos);
  write(R"({"w":{"dtype":"F32","shape":[-1],"data_offsets":[0,0]}})", 0);
  EXPECT_NE(refusal(model()).find("expected a shape of counts"), std::string::npos);
}

TEST_F(Safetensors, RefusesATensorThatIsThereTwice) {
  write(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
        R"("w":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
        8);
  EXPECT_NE(refusal(model()).find("tensor 'w' is there twice"), std::string::npos);
}

TEST_F(Safetensors, RefusesAnotherShape) {
  ASSERT_TRUE(save_weights(path(), {{"w", at::ones({4, 1})}}));
  EXPECT_EQ(refusal(model()),
            "DIR/model.safetensors: error: tensor 'w': expected shape [2,2], got [4,1] "
            "[checkpoint.shape]");
}

TEST_F(Safetensors, RefusesAMissingTensorAndNamesTheNearest) {
  ASSERT_TRUE(save_weights(path(), {{"layers.0.weights", at::ones({2})}}));
  ModelGraph graph;
  graph.parameters.push_back({"layers.0.weight", DType::float32, {2}, false, {}});
  EXPECT_EQ(refusal(graph),
            "DIR: error: tensor 'layers.0.weight' is missing (did you mean 'layers.0.weights'?) "
            "[checkpoint.missing_tensor]");
}

TEST_F(Safetensors, RefusesATypeThatIsNoWeight) {
  ASSERT_TRUE(save_weights(path(), {{"w", at::ones({2, 2}, at::kLong)}}));
  EXPECT_EQ(refusal(model()),
            "DIR/model.safetensors: error: tensor 'w': expected F64, F32, F16 or BF16, got I64 "
            "[checkpoint.dtype]");
}

TEST_F(Safetensors, ShowsTheFirstOfManyMistakes) {
  ASSERT_TRUE(save_weights(path(), {{"x", at::ones({2})}}));
  ModelGraph graph;
  for (int i = 0; i < 20; ++i) {
    graph.parameters.push_back({"parameter" + std::to_string(i), DType::float32, {2}, false, {}});
  }

  const auto loaded = load_weights(folder_.string(), graph);

  ASSERT_EQ(loaded.error().size(), 8u);
  EXPECT_EQ(loaded.error().back().notes[0].message, "and 12 more such tensors");
}

TEST_F(Safetensors, KeepsTheOldFileWhereTheNewOneCannotBeWritten) {
  const Status saved =
      save_weights("/proc/no_such_folder/model.safetensors", {{"w", at::ones({2})}});
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error()[0].code, "checkpoint.write");
}

TEST_F(Safetensors, AreCheckedBeforeARun) {
  ASSERT_TRUE(save_weights(path(), {{"w", at::ones({4, 1})}}));
  Config config;
  config.checkpoint.initial_load_in_hf = true;
  config.checkpoint.initial_load_path = folder_.string();

  EXPECT_EQ(check_weights(config, model(), true).error()[0].code, "checkpoint.shape");
  EXPECT_TRUE(check_weights(config, model({4, 1}), true));
}

TEST_F(Safetensors, AreRefusedWhereTheJobNamesThemIfTheyAreNotThere) {
  Config config;
  config.checkpoint.initial_load_in_hf = true;
  config.checkpoint.initial_load_path = "nowhere";
  config.locations["checkpoint.initial_load_path"] = {"job.toml", 7, 1};

  EXPECT_EQ(
      to_string(check_weights(config, model(), true).error()),
      "job.toml:7:1: error: expected a .safetensors file or a folder with one, got 'nowhere', "
      "which is not there [checkpoint.initial_load_path]");
}

TEST_F(Safetensors, OfATiedModelAreWrittenOnceAndLoadAgain) {
  Config config;
  config.model.hf_assets_path = PIPER_SOURCE_DIR "/tests/data/oracles/qwen3_tied";
  config.training.dataset = Dataset::jsonl;
  const auto live = build_model(config, false);
  ASSERT_TRUE(live) << to_string(live.error());
  const auto weights = load_weights(config.model.hf_assets_path, live->graph);

  ASSERT_TRUE(save_hf(path("saved"), config, live->graph, *read_model_files(config), *weights));

  const auto saved = load_tensors(path("saved"));
  EXPECT_EQ(saved->size(), live->graph.parameters.size());
  EXPECT_EQ(saved->count("lm_head.weight"), 0u);
  for (const auto& [name, tensor] : *weights) {
    EXPECT_TRUE(at::equal(saved->at(name), tensor)) << name;
  }
  Config again = config;
  again.model.hf_assets_path = path("saved");
  EXPECT_EQ(print(build_model(again, false)->graph), print(live->graph));
}

}  // namespace
}  // namespace piper

// Models from shared libraries, good and bad.
#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include <set>

#include "runtime/model/build.h"
#include "runtime/models/find_model.h"
#include "tests/runtime/models/running_model.h"

namespace piper {
namespace {

Config from_library(const std::string& path, const std::string& name) {
  Config config;
  config.model.library = path;
  config.model.name = name;
  config.training.seq_len = 8;
  config.locations["model.library"] = {"job.toml", 3, 1};
  config.locations["model.name"] = {"job.toml", 2, 1};
  return config;
}

std::string refusal(const Config& config) {
  const auto built = build_model(config, true);
  return built ? "built" : to_string(built.error());
}

// The regions from which `region` can be reached, and itself.
std::set<std::uint32_t> ancestors(const ModelGraph& graph, std::uint32_t region) {
  std::set<std::uint32_t> found{region};
  for (const ValueId id : graph.regions[region].inputs) {
    if (!graph.value(id).is_input()) {
      found.merge(ancestors(graph, index(graph.value(id).producer)));
    }
  }
  return found;
}

TEST(TwoTower, HasTwoTowersThatDoNotDependOnEachOther) {
  const ModelGraph graph =
      value_of(build_model(from_library(PIPER_TWO_TOWER, "two_tower"), true)).graph;
  const TagId text = *graph.find_tag("text"), features = *graph.find_tag("features");

  ASSERT_EQ(graph.regions.size(), 7u);
  for (std::uint32_t i = 0; i < graph.regions.size(); ++i) {
    const bool is_text = graph.regions[i].tag(text).has_value();
    const bool is_vector = graph.regions[i].tag(features).has_value();
    for (const std::uint32_t before : ancestors(graph, i)) {
      EXPECT_FALSE(is_text && graph.regions[before].tag(features)) << i << " from " << before;
      EXPECT_FALSE(is_vector && graph.regions[before].tag(text)) << i << " from " << before;
    }
  }
  EXPECT_EQ(ancestors(graph, 6).size(), 7u);  // the last one needs both
}

TEST(TwoTower, TakesItsOwnKeysAndTheTypedOnes) {
  Config config = from_library(PIPER_TWO_TOWER, "two_tower");
  config.model.keys["depth"] = {std::int64_t{5}, {}};
  config.model.vocab = 300;

  const ModelGraph graph = value_of(build_model(config, false)).graph;

  EXPECT_EQ(graph.regions.size(), 13u);
  EXPECT_EQ(graph.parameters[0].shape, (std::vector<std::int64_t>{300, 32}));
}

TEST(TwoTower, NamesItsKnownKeysWhereOneIsUnknown) {
  Config config = from_library(PIPER_TWO_TOWER, "two_tower");
  config.model.keys["wdith"] = {std::int64_t{5}, {"job.toml", 4, 1}};

  EXPECT_EQ(
      refusal(config),
      "job.toml:4:1: error: unknown key 'wdith' in [model]; model 'two_tower' has no such key "
      "(did you mean 'width'?) [model.unknown_key]");
}

TEST(TwoTower, LearnsFromBothInputs) {
  RunningModel model(value_of(build_model(from_library(PIPER_TWO_TOWER, "two_tower"), false)));

  model
      .loss({{"tokens", at::ones({3, 8}, at::kLong)},
             {"features", at::ones({3, 4})},
             {"labels", at::ones({3, 1}, at::kLong)}})
      .backward();

  for (const Parameter& parameter : model.graph().parameters) {
    EXPECT_GT(model.parameter(parameter.name).grad().abs().max().item<float>(), 0)
        << parameter.name;
  }
}

TEST(ModelLibrary, IsRefusedWhereItIsNotThere) {
  EXPECT_EQ(refusal(from_library("nowhere.so", "x")),
            "job.toml:3:1: error: expected a shared library, got 'nowhere.so', which is not there "
            "[model.library]");
}

TEST(ModelLibrary, IsRefusedWhereItIsNoLibrary) {
  const std::string text = refusal(from_library(PIPER_SOURCE_DIR "/LICENSE", "x"));
  EXPECT_TRUE(text.starts_with("job.toml:3:1: error: cannot open the model library: ")) << text;
  EXPECT_TRUE(text.ends_with("LICENSE: invalid ELF header [model.library]")) << text;
}

TEST(ModelLibrary, IsRefusedWhereItRegistersNoModel) {
  const std::string text = refusal(from_library(PIPER_NO_MODEL, "x"));
  EXPECT_NE(text.find("registers no model; expected PIPER_MODEL(name, function) in it"),
            std::string::npos)
      << text;
}

TEST(ModelLibrary, IsRefusedUnderAnotherName) {
  const std::string text = refusal(from_library(PIPER_TWO_TOWER, "qwen3"));
  EXPECT_NE(text.find("job.toml:2:1: error: expected 'two_tower', the model of '"),
            std::string::npos)
      << text;
}

TEST(ModelLibrary, ThatThrowsGivesItsTextAndNotACrash) {
  EXPECT_EQ(refusal(from_library(PIPER_THROWING_MODEL, "throwing")),
            "job.toml:2:1: error: building model 'throwing' failed: the weights do not fit "
            "[model.failed]");
}

TEST(BuiltInModel, OfAnotherNameIsRefusedWithTheNearest) {
  Config config;
  config.model.name = "qwen";
  EXPECT_EQ(build_model(config, false).error()[0].message,
            "unknown model 'qwen' (did you mean 'qwen3'?)");
}

}  // namespace
}  // namespace piper

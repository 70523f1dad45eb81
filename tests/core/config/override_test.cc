#include <gtest/gtest.h>

#include "core/config/config.h"
#include "tests/core/config/job.h"

namespace piper {
namespace {

using testing::errors;
using testing::load;

constexpr const char* kJob = "[training]\nsteps = 3\n[[strategy]]\nplugin = \"zero\"\nstage = 2\n";

TEST(Overrides, ReplaceAndAddValues) {
  const auto config = load(kJob, {"training.steps=5", "mesh.pp=2", "optimizer.lr=1e-2",
                                  "model.tied=true", "training.dtype=float64"});

  ASSERT_TRUE(config.has_value()) << to_string(config.error());
  EXPECT_EQ(config->training.steps, 5);
  EXPECT_EQ(config->mesh.size("pp"), 2U);
  EXPECT_EQ(config->optimizer.lr, 0.01);
  EXPECT_EQ(config->model.tied, true);
  EXPECT_EQ(config->training.dtype, DType::float64);
}

TEST(Overrides, TakeTheLastOfSeveral) {
  const auto config = load(kJob, {"training.steps=5", "training.steps=6"});

  ASSERT_TRUE(config.has_value()) << to_string(config.error());
  EXPECT_EQ(config->training.steps, 6);
}

TEST(Overrides, NeedNoQuotesForTextsAndTakeListsAsToml) {
  const auto config =
      load(kJob, {"model.flavor=0.6b", "metrics.file=a=b.json", "model.name=\"quoted\"",
                  "training.dataset_path=[\"a\", \"b c\"]", "mesh.order=[\"dp\", \"pp\"]"});

  ASSERT_TRUE(config.has_value()) << to_string(config.error());
  EXPECT_EQ(config->model.flavor, "0.6b");
  EXPECT_EQ(config->metrics.file, "a=b.json");
  EXPECT_EQ(config->model.name, "quoted");
  EXPECT_EQ(config->training.dataset_path, (std::vector<std::string>{"a", "b c"}));
  EXPECT_EQ(config->mesh.axes.back().first, "pp");
}

TEST(Overrides, ReachAStrategyByItsPlugin) {
  const auto config = load(kJob, {"strategy.zero.stage=3", "strategy.zero.mode=fast"});

  ASSERT_TRUE(config.has_value()) << to_string(config.error());
  const auto& options = config->strategies[0].options;
  ASSERT_EQ(options.size(), 2U);
  EXPECT_EQ(std::get<std::int64_t>(options[0].second.value), 3);
  EXPECT_EQ(std::get<std::string>(options[1].second.value), "fast");
  EXPECT_EQ(to_string(options[0].second.where), "--strategy.zero.stage=3");
}

TEST(Overrides, PreferTheNameOfAStrategyToItsPlugin) {
  const auto config =
      load("[[strategy]]\nplugin = \"a\"\n[[strategy]]\nplugin = \"b\"\nname = \"a\"\n",
           {"strategy.a.x=1"});

  ASSERT_TRUE(config.has_value()) << to_string(config.error());
  EXPECT_TRUE(config->strategies[0].options.empty());
  EXPECT_EQ(config->strategies[1].options.size(), 1U);
}

TEST(Overrides, RefuseAnAmbiguousStrategyAndShowBoth) {
  EXPECT_EQ(
      errors("[[strategy]]\nplugin = \"a\"\n[[strategy]]\nplugin = \"a\"\n", {"strategy.a.x=1"}),
      "--strategy.a.x=1: error: expected one [[strategy]] 'a', got 2; give them a name each "
      "[config.ambiguous_override]\n"
      "job.toml:1:1: note: this is one\n"
      "job.toml:3:1: note: this is one");
}

TEST(Overrides, NameTheNearestStrategy) {
  EXPECT_EQ(errors(kJob, {"strategy.zera.stage=3"}),
            "--strategy.zera.stage=3: error: unknown strategy 'zera' (did you mean 'zero'?) "
            "[config.unknown_strategy]");
}

TEST(Overrides, AreNamedAsThePlaceOfAMistake) {
  EXPECT_EQ(
      errors(kJob, {"training.steps=0", "training.sedd=1", "traning.seed=1", "optimizer.lr=fast"}),
      "--training.steps=0: error: training.steps: expected an integer of at least 1, got 0 "
      "[config.range]\n"
      "--training.sedd=1: error: unknown key 'sedd' in [training] (did you mean 'seed'?) "
      "[config.unknown_key]\n"
      "--traning.seed=1: error: unknown section [traning] (did you mean 'training'?) "
      "[config.unknown_section]\n"
      "--optimizer.lr=fast: error: optimizer.lr: expected a number, got \"fast\" "
      "[config.type]");
}

TEST(Overrides, HaveASectionAKeyAndAValue) {
  EXPECT_EQ(errors(kJob, {"steps=3", "training.steps", "strategy.stage=3"}),
            "--steps=3: error: expected --section.key=value, got --steps=3 [config.override]\n"
            "--training.steps: error: expected --section.key=value, got --training.steps "
            "[config.override]\n"
            "--strategy.stage=3: error: expected --strategy.name.key=value, got "
            "--strategy.stage=3 [config.override]");
}

TEST(Overrides, CannotSmuggleInFurtherKeys) {
  EXPECT_EQ(errors(kJob, {"training.seed=1\nsteps = 9"}),
            "--training.seed=1\nsteps = 9: error: training.seed: expected an integer, got \"1\n"
            "steps = 9\" [config.type]");
}

}  // namespace
}  // namespace piper

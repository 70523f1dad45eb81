#include <gtest/gtest.h>

#include <set>
#include <string>

#include "core/config/config.h"
#include "core/config/schema.h"
#include "tests/core/config/job.h"

namespace piper {
namespace {

using testing::load;

constexpr const char* kJob = R"([model]
library = "my \"model\".so"
name = "mine"
width = 3
scale = 2.0
[mesh]
dp = 2
cp = 3
order = ["dp", "cp"]
[training]
dataset_path = ["a", "b"]
[optimizer]
lr = 0.1
[[optimizer.group]]
parameters = ["*norm*"]
lr = 1e-30
[[strategy]]
plugin = "zero"
name = "inner"
stage = 2
share = 1.0
flag = true
list = [1, 2]
[lr_scheduler]
decay_ratio = 0.3333333333333333
)";

TEST(Print, GivesTomlThatLoadsAsTheSameJob) {
  const auto config = load(kJob);
  ASSERT_TRUE(config.has_value()) << to_string(config.error());

  const std::string printed = print(*config);
  const auto again = load(printed);

  ASSERT_TRUE(again.has_value()) << to_string(again.error()) << '\n' << printed;
  EXPECT_EQ(print(*again), printed);
  EXPECT_EQ(again->mesh.axes, config->mesh.axes);
  EXPECT_EQ(again->strategies[0].name, "inner");
  EXPECT_TRUE(std::holds_alternative<double>(again->strategies[0].options[1].second.value));
  EXPECT_EQ(again->optimizer.groups[0].lr, 1e-30);
  EXPECT_EQ(again->lr_scheduler.decay_ratio, config->lr_scheduler.decay_ratio);
}

TEST(Print, FillsInDefaults) {
  const auto config = load("[training]\nsteps = 3\n");

  EXPECT_NE(print(*config).find("\nseq_len = 128\n"), std::string::npos);
  EXPECT_NE(print(*config).find("\n[optimizer]\nname = \"adamw\"\n"), std::string::npos);
}

TEST(ModelKey, DependsOnTheModelTheTypeAndTheLengthAlone) {
  const auto key = [](const std::vector<std::string>& overrides) {
    return model_key(*load("[training]\nsteps = 3\n", overrides));
  };

  EXPECT_EQ(key({}), key({"training.steps=4", "mesh.pp=2", "optimizer.lr=3.0"}));
  const std::set<std::string> different = {key({}), key({"model.layers=3"}),
                                           key({"training.dtype=float64"}),
                                           key({"training.seq_len=64"}), key({"model.freeze=*"})};
  EXPECT_EQ(different.size(), 5U);
}

TEST(Schema, HasEachKeyOnceWithAHelp) {
  std::set<std::string> paths;
  for (const Key& key : schema()) {
    EXPECT_TRUE(paths.insert(key.path()).second) << key.path();
    EXPECT_FALSE(key.help.empty()) << key.path();
  }
}

TEST(Schema, HasDefaultsThatItAccepts) {
  const Config defaults;
  for (const Key& key : schema()) {
    const std::string text = key.supported ? key.text(defaults) : "";
    if (!text.empty()) {
      const RawValue value = parse_raw_value(text, {"default"});
      const auto wrong = check(key, key.path(), value);
      EXPECT_FALSE(wrong.has_value()) << to_string(*wrong);
    }
  }
}

}  // namespace
}  // namespace piper

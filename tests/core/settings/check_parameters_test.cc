// Settings that name parameters, against a model that has them or not.
#include "core/settings/check_parameters.h"

#include <gtest/gtest.h>

#include "tests/core/config/job.h"

namespace piper {
namespace {

constexpr const char* kNames[] = {"embed.weight", "layers.0.norm", "layers.0.up", "layers.1.norm",
                                  "layers.1.up"};

ModelGraph model_of(const std::vector<std::string>& freeze = {}) {
  ModelGraph model;
  for (const char* name : kNames) {
    Parameter parameter{name, DType::float32, {2}, false, {}};
    for (const std::string& glob : freeze) {
      parameter.frozen = parameter.frozen || glob_matches(glob, name);
    }
    model.parameters.push_back(std::move(parameter));
  }
  model.values = {{"labels", DType::int64, {{1, 0}, {0, 16}}}};
  model.labels = ValueId{0};
  return model;
}

// What is said, errors or remarks, with the file called job.toml; "" when nothing is.
std::string said(const std::string& job, const std::vector<std::string>& freeze = {},
                 const std::vector<std::string>& overrides = {}) {
  const testing::JobFile file(job);
  const auto config = load_config(file.path(), overrides);
  if (!config) {
    return to_string(config.error());
  }
  const auto checked = check_parameters(*config, model_of(freeze));
  std::string text = to_string(checked ? *checked : checked.error());
  for (std::size_t at = 0; (at = text.find(file.path(), at)) != std::string::npos;) {
    text.replace(at, file.path().size(), "job.toml");
  }
  return text;
}

TEST(CheckParameters, SaysNothingOfGroupsThatShareTheModelOut) {
  EXPECT_EQ(said("[[optimizer.group]]\nparameters = \"*norm\"\nweight_decay = 0\n"
                 "[[optimizer.group]]\nparameters = [\"layers.*\", \"embed?weight\"]\nlr = 0.1\n"),
            "");
}

TEST(CheckParameters, RefusesAGlobThatMatchesNothing) {
  EXPECT_EQ(said("[[optimizer.group]]\nparameters = [\"*norm\", \"embed.wieght\"]\nlr = 0.1\n"),
            "job.toml:2:24: error: [[optimizer.group]]: no parameter matches 'embed.wieght' (did "
            "you mean 'embed.weight'?) [optimizer.group]");
  EXPECT_EQ(said("[[optimizer.group]]\nparameters = \"lm_head.*\"\nlr = 0.1\n"),
            "job.toml:2:14: error: [[optimizer.group]]: no parameter matches 'lm_head.*' (known: "
            "embed.weight, layers.0.norm, layers.0.up and 2 more, see `piper capture`) "
            "[optimizer.group]");
}

TEST(CheckParameters, RefusesAGroupToWhichEarlierOnesLeaveNothing) {
  EXPECT_EQ(said("[[optimizer.group]]\nparameters = \"layers.*\"\nlr = 0.1\n"
                 "[[optimizer.group]]\nparameters = \"*norm\"\nweight_decay = 0\n"),
            "job.toml:4:1: error: [[optimizer.group]]: expected a parameter that no earlier group "
            "has, got none: all 2 parameters that this one matches are in earlier ones "
            "[optimizer.group]\n"
            "job.toml:1:1: note: 'layers.0.norm' is in this one");
}

TEST(CheckParameters, RemarksOnAGlobToWhichEarlierGroupsLeaveNothing) {
  EXPECT_EQ(said("[[optimizer.group]]\nparameters = \"layers.*\"\nlr = 0.1\n"
                 "[[optimizer.group]]\nparameters = [\"embed.*\", \"*1.up\"]\nlr = 0.2\n"),
            "job.toml:5:26: warning: [[optimizer.group]]: '*1.up' has no effect: the parameter "
            "that it matches is in an earlier group [config.no_effect]\n"
            "job.toml:1:1: note: 'layers.1.up' is in this one");
}

TEST(CheckParameters, RemarksOnAGroupOfFrozenParameters) {
  EXPECT_EQ(said("[[optimizer.group]]\nparameters = \"embed.*\"\nlr = 0.1\n", {"embed.*"}),
            "job.toml:1:1: warning: [[optimizer.group]] has no effect: model.freeze has every "
            "parameter that it matches [config.no_effect]");
}

TEST(CheckParameters, RefusesAJobThatLeavesNothingToTrain) {
  EXPECT_EQ(said("[model]\nfreeze = [\"embed.*\", \"layers.*\"]\n", {"embed.*", "layers.*"}),
            "job.toml:2:10: error: model.freeze: expected a parameter that is left to train, got "
            "all 5 parameters frozen [model.freeze]");
  EXPECT_EQ(said("[model]\nfreeze = \"embed.*\"\n", {"embed.*"}), "");
}

TEST(CheckParameters, RemarksOnWhatEveryGroupReplaces) {
  EXPECT_EQ(said("[optimizer]\nlr = 0.5\nweight_decay = 0.5\n"
                 "[[optimizer.group]]\nparameters = \"*norm\"\nlr = 0.1\n"
                 "[[optimizer.group]]\nparameters = \"*\"\nlr = 0.2\n"),
            "job.toml:2:6: warning: optimizer.lr has no effect: every parameter that is trained is "
            "in an [[optimizer.group]] with one of its own [config.no_effect]");
}

TEST(CheckParameters, RemarksOnARateOfZeroForAll) {
  const std::string still =
      ": warning: optimizer.lr: a learning rate of 0 for every parameter: no step changes a "
      "weight [config.less_effect]";

  EXPECT_EQ(said("[optimizer]\nlr = 0\n"), "job.toml:2:6" + still);
  EXPECT_EQ(said("[optimizer]\nlr = 0\n[[optimizer.group]]\nparameters = \"*norm\"\nlr = 0.1\n"),
            "");
}

TEST(CheckParameters, RemarksOnALengthAndATypeThatAGraphDoesNotHave) {
  const std::string graph = "[model]\ngraph = \"m.graph\"\n[training]\n";

  EXPECT_EQ(said(graph + "seq_len = 64\ndtype = \"bfloat16\"\n"),
            "job.toml:4:11: warning: training.seq_len has no effect: model.graph was captured with "
            "16 [config.no_effect]\n"
            "job.toml:5:9: warning: training.dtype has no effect: model.graph was captured with "
            "\"float32\" [config.no_effect]");
  EXPECT_EQ(said(graph + "seq_len = 16\n"), "");
}

}  // namespace
}  // namespace piper

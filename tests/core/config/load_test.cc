#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "core/config/config.h"
#include "core/config/schema.h"
#include "tests/core/config/job.h"

namespace piper {
namespace {

using testing::errors;
using testing::load;

TEST(Config, TakesEveryKindOfValueFromTheFile) {
  const auto config = load(R"(
[model]
layers = 8
tied = true
freeze = ["embed*", "norm"]
[mesh]
pp = 2
dp = 3
[training]
dataset = "jsonl"
dataset_path = "rows.jsonl"
dtype = "bfloat16"
global_batch_size = 24
microbatches = 4
seed = 7
[optimizer]
name = "sgd"
lr = 1
[lr_scheduler]
decay_ratio = 0.25
)");

  ASSERT_TRUE(config.has_value()) << to_string(config.error());
  EXPECT_EQ(config->model.layers, 8);
  EXPECT_EQ(config->model.tied, true);
  EXPECT_EQ(config->model.freeze, (std::vector<std::string>{"embed*", "norm"}));
  EXPECT_EQ(config->mesh.world(), 6U);
  EXPECT_EQ(config->training.dataset, Dataset::jsonl);
  EXPECT_EQ(config->training.dataset_path, std::vector<std::string>{"rows.jsonl"});
  EXPECT_EQ(config->training.dtype, DType::bfloat16);
  EXPECT_EQ(config->training.seed, 7U);
  EXPECT_EQ(config->optimizer.name, OptimizerName::sgd);
  EXPECT_EQ(config->optimizer.lr, 1.0);
  EXPECT_EQ(config->lr_scheduler.decay_ratio, 0.25);
}

TEST(Config, LeavesDefaultsWhereAKeyIsNotGiven) {
  const auto config = load("[training]\nsteps = 3\n");

  ASSERT_TRUE(config.has_value()) << to_string(config.error());
  EXPECT_EQ(config->training.steps, 3);
  EXPECT_EQ(config->training.seq_len, TrainingConfig().seq_len);
  EXPECT_EQ(config->model.tied, std::nullopt);
  EXPECT_EQ(config->mesh.world(), 1U);
}

TEST(Config, ReportsEveryMistakeInTheOrderOfTheFile) {
  EXPECT_EQ(errors(R"([model]
layers = "eight"
[training]
seq_length = 3
steps = 0
)"),
            "job.toml:2:10: error: model.layers: expected an integer, got \"eight\" [config.type]\n"
            "job.toml:4:1: error: unknown key 'seq_length' in [training] (did you mean 'seq_len'?) "
            "[config.unknown_key]\n"
            "job.toml:5:9: error: training.steps: expected an integer of at least 1, got 0 "
            "[config.range]");
}

TEST(Config, RefusesAnUnknownSectionWithTheNearestName) {
  EXPECT_EQ(errors("[optimiser]\nlr = 1.0\n"),
            "job.toml:1:1: error: unknown section [optimiser] (did you mean 'optimizer'?) "
            "[config.unknown_section]");
}

TEST(Config, SaysInWhichSectionALooseKeyBelongs) {
  EXPECT_EQ(errors("steps = 3\n"),
            "job.toml:1:1: error: expected keys below a section, got 'steps' above all of them "
            "(did you mean it in [training]?) [config.unknown_key]");
}

TEST(Config, RefusesNumbersThatAreNotFinite) {
  EXPECT_EQ(errors("[optimizer]\nlr = nan\nweight_decay = inf\n"),
            "job.toml:2:6: error: optimizer.lr: expected a finite number, got nan [config.range]\n"
            "job.toml:3:16: error: optimizer.weight_decay: expected a finite number, got inf "
            "[config.range]");
}

TEST(Config, RefusesNumbersOutsideTheirRange) {
  EXPECT_EQ(errors("[optimizer]\nlr = -0.1\nbeta1 = 1.0\neps = 0\n"),
            "job.toml:2:6: error: optimizer.lr: expected a number of at least 0, got -0.1 "
            "[config.range]\n"
            "job.toml:3:9: error: optimizer.beta1: expected a number below 1, got 1.0 "
            "[config.range]\n"
            "job.toml:4:7: error: optimizer.eps: expected a number above 0, got 0 [config.range]");
}

TEST(Config, NamesTheNearestChoice) {
  EXPECT_EQ(errors("[training]\ndtype = \"bfloat\"\n"),
            "job.toml:2:9: error: training.dtype: expected one of \"float32\", \"float64\", "
            "\"bfloat16\", got \"bfloat\" (did you mean 'bfloat16'?) [config.choice]");
}

TEST(Config, RefusesWhatIsDesignedButNotImplemented) {
  EXPECT_EQ(errors("[model]\nexperts = 4\n[device]\ntype = \"cuda\"\n"),
            "job.toml:2:1: error: model.experts is not supported by this version "
            "[config.unsupported]\n"
            "job.toml:4:8: error: device.type: \"cuda\" is not supported by this version "
            "(expected \"cpu\") [config.unsupported]");
}

TEST(Config, TakesAFilterForWhatIsRecomputed) {
  const auto config = load(
      "[activation_checkpoint]\nmode = \"selective\"\n"
      "filter = { layer = \"0..1\", attention = \"*\" }\n");

  ASSERT_TRUE(config) << to_string(config.error());
  EXPECT_EQ(config->activation_checkpoint.mode, ActivationCheckpointConfig::Mode::selective);
  const auto again = load(print(*config));
  ASSERT_TRUE(again) << to_string(again.error());
  EXPECT_EQ(toml_value(again->activation_checkpoint.filter),
            "{ layer = \"0..1\", attention = \"*\" }");
}

TEST(Config, RefusesAModeOfRecomputationThatDoesNotGoWithTheFilter) {
  EXPECT_EQ(errors("[activation_checkpoint]\nmode = \"full\"\nfilter = { layer = 0 }\n"),
            "job.toml:3:10: error: activation_checkpoint.filter: expected "
            "activation_checkpoint.mode = \"selective\", got \"full\" [config.conflict]");
  EXPECT_EQ(errors("[activation_checkpoint]\nmode = \"selective\"\n"),
            "job.toml:2:8: error: activation_checkpoint.mode = \"selective\": expected "
            "activation_checkpoint.filter, got none [config.missing_key]");
  EXPECT_EQ(errors("[activation_checkpoint]\nfilter = 3\n"),
            "job.toml:2:10: error: activation_checkpoint.filter: expected a filter such as "
            "{ layer = \"0..3\" }, got 3 [config.type]");
  EXPECT_TRUE(load("[activation_checkpoint]\nfilter = { layer = 0 }\n"));
}

TEST(Config, TakesNoRanksForExpertGroupsWhichDivideDp) {
  const auto config = load("[mesh]\nep = 2\ndp = 4\norder = [\"dp\", \"pp\"]\n");

  ASSERT_TRUE(config) << to_string(config.error());
  EXPECT_EQ(config->mesh.size("ep"), 2U);
  EXPECT_EQ(config->mesh.world(), 4U);
  EXPECT_EQ(load(print(*config))->mesh.axes, config->mesh.axes);
  EXPECT_EQ(errors("[mesh]\nep = 3\ndp = 4\n"),
            "job.toml:2:6: error: mesh.ep: expected a divisor of dp 4, got 3 [config.range]");
  EXPECT_EQ(errors("[mesh]\nep = 2\ndp = 4\norder = [\"ep\"]\n"),
            "job.toml:4:10: error: mesh.order: unknown axis 'ep' (did you mean 'pp'?) "
            "[config.unknown_axis]");
}

TEST(Config, TakesDirectivesOnlyAsTablesAndOnlyFromTheFile) {
  EXPECT_EQ(errors("[directive]\nop = \"split\"\n"),
            "job.toml:1:1: error: expected [[directive]], one table a directive, got [directive] "
            "[config.type]");
  EXPECT_EQ(errors("[[directive]]\nop = \"split\"\nn = 2\n", {"directive.n=3"}),
            "--directive.n=3: error: expected directive in the job file, got it as an override "
            "[config.override]");
}

TEST(Config, RefusesFewerRowsThanDataParallelRanksTimesMicrobatches) {
  EXPECT_EQ(errors("[mesh]\ndp = 2\n[training]\nglobal_batch_size = 7\nmicrobatches = 4\n"),
            "job.toml:4:21: error: training.global_batch_size: expected at least 8 rows (dp 2 x "
            "microbatches 4), got 7 [config.rows]\n"
            "job.toml:2:6: note: mesh.dp is given here\n"
            "job.toml:5:16: note: training.microbatches is given here");
}

TEST(Config, ChecksNoRuleOnAValueThatIsWrongItself) {
  EXPECT_EQ(errors("[training]\nglobal_batch_size = \"few\"\nmicrobatches = 99\n"),
            "job.toml:2:21: error: training.global_batch_size: expected an integer, got \"few\" "
            "[config.type]");
}

TEST(Config, RefusesAMeshThatIsNotTheWorldSize) {
  ::setenv("WORLD_SIZE", "4", 1);
  const std::string printed = errors("[mesh]\npp = 2\n");
  ::unsetenv("WORLD_SIZE");

  EXPECT_EQ(printed,
            "job.toml:1:1: error: mesh: expected 4 ranks (WORLD_SIZE), got 2 (pp 2 x dp 1) "
            "[config.world_size]");
}

TEST(Config, WantsAPathForWeightsThatItShallLoadOrSave) {
  EXPECT_EQ(errors("[checkpoint]\ninitial_load_in_hf = true\nlast_save_in_hf = true\n"),
            "job.toml:2:22: error: checkpoint.initial_load_in_hf: expected "
            "checkpoint.initial_load_path or model.hf_assets_path, got neither "
            "[config.missing_key]\n"
            "job.toml:3:19: error: checkpoint.last_save_in_hf: expected "
            "checkpoint.last_save_path, got none [config.missing_key]");
}

TEST(Config, RefusesAnAmountOfMemoryItCannotRead) {
  EXPECT_EQ(errors("[memory]\ncapacity = \"40Gib\"\n"),
            "job.toml:2:12: error: memory.capacity: expected an amount as \"40GiB\" or \"512 MB\", "
            "got \"40Gib\" [config.range]");
  EXPECT_EQ(errors("[memory]\ncapacity = \"\"\n"),
            "job.toml:2:12: error: memory.capacity: expected an amount as \"40GiB\" or \"512 MB\", "
            "got \"\" [config.range]");
}

TEST(Config, WantsAFileOfCostsWhereCostsAreMeasured) {
  EXPECT_EQ(errors("[cost]\nmodel = \"measured\"\n"),
            "job.toml:2:9: error: cost.model = \"measured\": expected cost.file, got none "
            "[config.missing_key]");
}

TEST(Config, SaysWhereAKeyWasWrittenOrTheNearestThingToIt) {
  const testing::JobFile file("[training]\nsteps = 3\n");
  const auto config = load_config(file.path(), {"mesh.pp=2"});

  ASSERT_TRUE(config.has_value());
  EXPECT_EQ(to_string(config->where("training.steps")), file.path() + ":2:9");
  EXPECT_EQ(to_string(config->where("training.seq_len")), file.path() + ":1:1");
  EXPECT_EQ(to_string(config->where("mesh.pp")), "--mesh.pp=2");
  EXPECT_EQ(to_string(config->where("optimizer.lr")), file.path());
}

TEST(Mesh, PutsPpOutermostAndDpInnermost) {
  const auto config = load("[mesh]\ndp = 2\ncp = 3\npp = 4\n");

  ASSERT_TRUE(config.has_value()) << to_string(config.error());
  const std::vector<std::pair<std::string, std::uint32_t>> expected = {
      {"pp", 4}, {"cp", 3}, {"dp", 2}};
  EXPECT_EQ(config->mesh.axes, expected);
}

TEST(Mesh, TakesTheOrderAsGivenWithOtherAxesOutsideOfIt) {
  const auto config = load("[mesh]\ndp = 2\npp = 4\ncp = 3\norder = [\"dp\", \"pp\"]\n");

  ASSERT_TRUE(config.has_value()) << to_string(config.error());
  const std::vector<std::pair<std::string, std::uint32_t>> expected = {
      {"cp", 3}, {"dp", 2}, {"pp", 4}};
  EXPECT_EQ(config->mesh.axes, expected);
}

TEST(Mesh, RefusesAnOrderOfAxesThatItDoesNotHave) {
  EXPECT_EQ(errors("[mesh]\norder = [\"pp\", \"tp\"]\n"),
            "job.toml:2:16: error: mesh.order: unknown axis 'tp' (did you mean 'pp'?) "
            "[config.unknown_axis]");
}

TEST(Mesh, RefusesMoreRanksThanFit) {
  EXPECT_EQ(errors("[mesh]\npp = 60000\ndp = 60000\nzz = 60000\n"),
            "job.toml:1:1: error: mesh: expected at most 65536 ranks, got a larger product of axes "
            "[config.range]");
}

TEST(Strategies, KeepTheirOptionsInTheOrderOfTheFile) {
  const auto config = load("[[strategy]]\nplugin = \"zero\"\nzz = 2\naa = [1.5, \"b\"]\n");

  ASSERT_TRUE(config.has_value()) << to_string(config.error());
  ASSERT_EQ(config->strategies.size(), 1U);
  EXPECT_EQ(config->strategies[0].name, "zero");
  ASSERT_EQ(config->strategies[0].options.size(), 2U);
  EXPECT_EQ(config->strategies[0].options[0].first, "zz");
  EXPECT_EQ(config->strategies[0].options[1].first, "aa");
}

TEST(Strategies, WantAPlugin) {
  EXPECT_EQ(errors("[[strategy]]\nstage = 2\n"),
            "job.toml:1:1: error: [[strategy]]: expected the key 'plugin', got none "
            "[config.missing_key]");
}

TEST(Strategies, AreAListOfTables) {
  EXPECT_EQ(errors("[strategy]\nplugin = \"zero\"\n"),
            "job.toml:1:1: error: expected [[strategy]], one table a plugin, got [strategy] "
            "[config.type]");
}

TEST(Strategies, RefuseOneNameForTwo) {
  EXPECT_EQ(errors("[[strategy]]\nplugin = \"a\"\nname = \"x\"\n[[strategy]]\nplugin = \"b\"\n"
                   "name = \"x\"\n"),
            "job.toml:6:8: error: strategy name 'x' is given twice [config.duplicate_name]\n"
            "job.toml:1:1: note: first given here");
}

TEST(OptimizerGroups, GoToTheFirstGlobThatMatches) {
  const auto config = load(
      "[[optimizer.group]]\nparameters = \"*norm*\"\nweight_decay = 0\n"
      "[[optimizer.group]]\nparameters = [\"model.layers.0.*\", \"lm_head\"]\nlr = 0.5\n");

  ASSERT_TRUE(config.has_value()) << to_string(config.error());
  EXPECT_EQ(optimizer_group(*config, "model.layers.0.norm.weight"), 0U);
  EXPECT_EQ(optimizer_group(*config, "model.layers.0.mlp.weight"), 1U);
  EXPECT_EQ(optimizer_group(*config, "model.layers.1.mlp.weight"), 2U);
}

TEST(OptimizerGroups, RefuseKeysOfTheWholeOptimizer) {
  EXPECT_EQ(errors("[[optimizer.group]]\nparameters = \"*\"\nbeta1 = 0.5\n"),
            "job.toml:3:1: error: unknown key 'beta1' in [[optimizer.group]] (known: parameters, "
            "lr, weight_decay) [config.unknown_key]");
}

TEST(ModelKeys, OfAUsersOwnModelAreKeptForIt) {
  const auto config = load("[model]\nlibrary = \"./my.so\"\nname = \"mine\"\nwidth = 3\n");

  ASSERT_TRUE(config.has_value()) << to_string(config.error());
  ASSERT_EQ(config->model.keys.size(), 1U);
  EXPECT_EQ(std::get<std::int64_t>(config->model.keys.at("width").value), 3);
}

TEST(Globs, MatchAnyTextForAStarAndOneCharacterForAQuestionMark) {
  EXPECT_TRUE(glob_matches("*", ""));
  EXPECT_TRUE(glob_matches("a*c*e", "abcde"));
  EXPECT_TRUE(glob_matches("a?c", "abc"));
  EXPECT_TRUE(glob_matches("*.weight", "a.weight.weight"));
  EXPECT_FALSE(glob_matches("a?c", "ac"));
  EXPECT_FALSE(glob_matches("a*c", "abcd"));
  EXPECT_FALSE(glob_matches("", "a"));
  EXPECT_TRUE(glob_matches("a.[0]", "a.[0]"));
}

}  // namespace
}  // namespace piper

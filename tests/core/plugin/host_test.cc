// What plugins see, what the host takes from them, and what they need of each other.
#include "core/plugin/host.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "core/directives/sequence.h"
#include "tests/support/toy_model.h"

namespace piper {
namespace {

const SearchPath kPath{{GUEST_DIR}, false};

StrategyConfig strategy(const std::string& plugin, std::uint32_t line) {
  return {plugin, plugin, {}, {"job.toml", line, 1}};
}

Config job(std::vector<StrategyConfig> strategies) {
  Config config = test::toy_config(1, 2, 3);
  config.strategies = std::move(strategies);
  return config;
}

std::string lines(const Diagnostics& diagnostics) {
  return to_string(diagnostics) + "\n";
}

TEST(Host, ShowsTheJobTheModelAndTheOptionsToThePlugin) {
  StrategyConfig observer = strategy("observer", 7);
  observer.options = {{"names",
                       {std::vector<OptionValue>{{std::string("a"), {"job.toml", 8, 10}},
                                                 {std::string("b"), {"job.toml", 8, 15}}},
                        {"job.toml", 8, 9}}}};
  Diagnostics warnings;

  const auto proposals = propose(job({observer}), test::toy_model({1}), kPath, &warnings);

  ASSERT_TRUE(proposals) << to_string(proposals.error());
  EXPECT_EQ(
      lines(warnings),
      "job.toml:7:1: warning: observer: world 2, pp=1 dp=2, microbatches 3, rows 2 of 8 "
      "[observer.mesh]\n"
      "toy.cc:10: warning: observer: {} (embed.weight:512) flops 512r+0 from 1 [observer.region]\n"
      "toy.cc:11: warning: observer: {layer=0} (layers.0.weight:256) flops 512r+0 from 1 "
      "[observer.region]\n"
      "toy.cc:12: warning: observer: {} (head.weight:512) flops 512r+0 from 2 [observer.region]\n"
      "job.toml:7:1: warning: observer: depth 4 default [observer.option]\n"
      "job.toml:8:10: warning: observer: name a [observer.option]\n"
      "job.toml:8:15: warning: observer: name b [observer.option]\n"
      "job.toml:7:1: warning: observer: of a larger struct, the host fills what it knows "
      "[observer.size]\n");
}

TEST(Host, TakesEveryKindOfDirective) {
  const auto proposals = propose(job({strategy("observer", 7)}), test::toy_model({1}), kPath);

  ASSERT_TRUE(proposals) << to_string(proposals.error());
  std::string text;
  for (const Directive& directive : proposals->at(0).directives) {
    text += to_string(directive) + "\n";
  }
  EXPECT_EQ(text,
            "split_backward {layer=*, EP=-}   # observer, job.toml:7:1\n"
            "tag {layer=[0, 2], layer=0..1} EVEN=7   # observer, job.toml:7:1\n"
            "tag {REGION=[0]} THIRD=0   # observer, job.toml:7:1\n"
            "tag {REGION=[1]} THIRD=1   # observer, job.toml:7:1\n"
            "tag {REGION=[2]} THIRD=2   # observer, job.toml:7:1\n"
            "tag {REGION=[0]} CUT=0   # observer, job.toml:7:1\n"
            "tag {REGION=[1, 2]} CUT=1   # observer, job.toml:7:1\n"
            "place {EVEN=7} ranks=[1, 0] stream=side   # observer, job.toml:7:1\n"
            "replicate {EP=-} family=[[0], [1]] reduce_stream=reduce gather_stream=gather "
            "shard=optimizer+grads+params prefetch=2 keep_gathered=step reduce=chain "
            "bucket_bytes=4096   # observer, job.toml:7:1\n"
            "shard {EP=*} family=[[0, 1]] stream=ep   # observer, job.toml:7:1\n"
            "order [{MB=0, PASS=F}], [{MB=1, PASS=F, B}]   # observer, job.toml:7:1\n"
            "order_chain ranks=[0, 1] 0F0 0F1&1 0B0&1   # observer, job.toml:7:1\n"
            "split {} dim=MB n=3   # observer, job.toml:7:1\n"
            "recompute {layer=*}   # observer, job.toml:7:1\n");
}

TEST(Host, GivesOneProposalAStrategyInTheJobsOrder) {
  const auto proposals =
      propose(job({strategy("parting", 3), strategy("observer", 7)}), test::toy_model({1}), kPath);

  ASSERT_TRUE(proposals) << to_string(proposals.error());
  ASSERT_EQ(proposals->size(), 2U);
  EXPECT_EQ(proposals->at(0).from.plugin, "parting");
  EXPECT_EQ(proposals->at(1).from.plugin, "observer");
  EXPECT_EQ(proposals->at(1).from.where.line, 7U);
}

TEST(Host, RefusesAClaimOfAnAxisThatTheManifestDoesNotList) {
  StrategyConfig observer = strategy("observer", 7);
  EXPECT_TRUE(propose(job({observer}), test::toy_model({1}), kPath));
  observer.options = {{"axis", {std::string("pp"), {"job.toml", 8, 8}}}};
  EXPECT_TRUE(propose(job({observer}), test::toy_model({1}), kPath));  // the manifest lists "$axis"
  observer.options = {{"axis", {std::string("tp"), {"job.toml", 8, 8}}}};

  const auto refused = propose(job({observer}), test::toy_model({1}), kPath);

  ASSERT_FALSE(refused);
  EXPECT_EQ(to_string(refused.error()[0]),
            "job.toml:7:1: error: observer: the mesh has no axis 'tp' (did you mean 'dp'?) "
            "[mesh.unknown_axis]");
}

TEST(Host, RefusesAJobThatLacksWhatAPluginRequires) {
  EXPECT_EQ(to_string(check_strategies(job({strategy("parting", 3)}), kPath).error()),
            "job.toml:3:1: error: plugin 'parting' requires 'sight >= 2', which no other strategy "
            "of the job provides: it follows "
            "what is seen [plugin.requires]");
  EXPECT_TRUE(check_strategies(job({strategy("parting", 3), strategy("observer", 7)}), kPath));
}

TEST(Host, RefusesACapabilityOfAnOlderVersion) {
  const Status status =
      check_strategies(job({strategy("observer", 3), strategy("far_sighted", 7)}), kPath);

  ASSERT_FALSE(status);
  EXPECT_EQ(status.error()[0].code, "plugin.requires");
}

TEST(Host, TellsTheMistakesOfAllStrategiesAtOnce) {
  const Status status =
      check_strategies(job({strategy("nobody", 3), strategy("nothing", 7)}), kPath);

  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().size(), 2U);
}

StrategyConfig halfway(const char* option) {
  StrategyConfig strategy{"halfway", "halfway", {}, {"job.toml", 7, 1}};
  if (option != nullptr) {
    strategy.options = {{option, {true, {"job.toml", 8, 9}}}};
  }
  return strategy;
}

TEST(Host, KeepsNothingOfAPluginThatFailsHalfWay) {
  for (const char* way : {"fails", "throws"}) {
    EXPECT_FALSE(propose(job({halfway(way)}), test::toy_model({1}), kPath)) << way;

    const auto proposals = propose(job({halfway(nullptr)}), test::toy_model({1}), kPath);

    ASSERT_TRUE(proposals) << to_string(proposals.error());
    EXPECT_EQ(proposals->at(0).claims.size(), 1U) << way;
    EXPECT_EQ(proposals->at(0).directives.size(), 2U) << way;
  }
}

TEST(Host, TakesNoProposalsWhereOneOfThePluginsFails) {
  const auto proposals =
      propose(job({halfway("fails"), strategy("observer", 9)}), test::toy_model({1}), kPath);

  ASSERT_FALSE(proposals);
  EXPECT_EQ(to_string(proposals.error()),
            "job.toml:7:1: error: halfway: no more of this [halfway.half]");
}

TEST(Host, ProposesTheSameWhateverTheOrderOfFoldersAndTables) {
  const std::string guests = GUEST_DIR, good = HOSTILE_DIR "/good";
  const auto said = [&](const std::vector<std::string>& folders, bool reversed) {
    std::vector<StrategyConfig> strategies{strategy("good", 3), halfway(nullptr)};
    if (reversed) {
      std::swap(strategies[0], strategies[1]);
    }
    const auto proposals =
        propose(job(strategies), test::toy_model({1}), SearchPath{folders, false});
    const auto order = sequence(proposals.value());
    std::string text;
    for (const Sequence::Step& step : order.value().steps) {
      text += order->origins[step.origin].plugin + ": " + what_text(*step.directive) + '\n';
    }
    return text;
  };

  const std::string text = said({guests, good}, false);

  EXPECT_EQ(text,
            "halfway: tag {} FIRST=0\n"
            "halfway: tag {} SECOND=0\n"
            "good: place {} ranks=[0, 1] stream=compute\n");
  EXPECT_EQ(said({good, guests}, false), text);
  EXPECT_EQ(said({guests, good}, true), text);
  EXPECT_EQ(said({good, guests}, true), text);
}

TEST(Host, RefusesAJobWithWhatAPluginConflictsWith) {
  const Status status = check_strategies(
      job({halfway(nullptr), strategy("observer", 9), strategy("loner", 12)}), kPath);

  ASSERT_FALSE(status);
  EXPECT_EQ(
      to_string(status.error()),
      "job.toml:12:1: error: plugin 'loner' conflicts with 'sight >= 2': it works in the dark "
      "[plugin.conflict]\n"
      "job.toml:9:1: note: which 'observer' provides");
  EXPECT_TRUE(check_strategies(job({halfway(nullptr), strategy("loner", 12)}), kPath));
}

TEST(Host, NeedsNoPluginFolderWithoutStrategies) {
  EXPECT_TRUE(
      propose(job({}), test::toy_model({1}), SearchPath{{"/no/such/folder"}, false})->empty());
}

TEST(Host, ShutsPluginsDownOnce) {
  ASSERT_TRUE(
      propose(job({strategy("parting", 3), strategy("observer", 7)}), test::toy_model({1}), kPath));

  shut_down_plugins();
  shut_down_plugins();

  const char* calls = std::getenv("PIPER_TEST_SHUTDOWNS");
  ASSERT_NE(calls, nullptr);
  EXPECT_STREQ(calls, "1");
}

}  // namespace
}  // namespace piper

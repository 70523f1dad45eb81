// What schedules refuse: only what no reference takes, with the rule and the nearest legal value.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/plugin_job.h"
#include "tests/support/toy_model.h"

namespace piper {
namespace {

std::string refused(const char* plugin, std::uint32_t ranks, std::uint32_t microbatches,
                    const std::string& options, std::uint32_t layers = 32) {
  return test::refusal({plugin, ranks, 1, microbatches, test::options_of(options)},
                       test::toy_model({.layers = layers}));
}

// The least number of micro-batches is said.
TEST(Refusals, OfDualPipeSayTheNearestSize) {
  EXPECT_EQ(refused("dualpipe", 4, 7, "schedule=dualpipev"),
            "job.toml:4:16: error: dualpipe: dualpipev: expected at least twice as many "
            "micro-batches as ranks, 8, got 7 micro-batches; the nearest is 8 "
            "[dualpipe.microbatches]");
  EXPECT_EQ(refused("dualpipe", 3, 8, "schedule=dualpipe"),
            "job.toml:2:6: error: dualpipe: dualpipe: expected an even number of ranks, got pp = "
            "3; the nearest is 2 or 4 [dualpipe.ranks]");
  EXPECT_EQ(refused("dualpipe", 4, 9, "schedule=dualpipe"),
            "job.toml:4:16: error: dualpipe: dualpipe: expected an even number of micro-batches, "
            "half for each end, got 9 micro-batches; the nearest is 8 or 10 "
            "[dualpipe.microbatches]");
}

TEST(Refusals, OfGroupsSayTheNearestSize) {
  EXPECT_EQ(refused("interleaved1f1b", 2, 16, "schedule=interleaved group_size=5"),
            "job.toml:9:12: error: interleaved1f1b: interleaved: expected groups of at least as "
            "many micro-batches as ranks (2), a last one of no fewer, and at most all 16, got 5; "
            "the nearest is 4 [interleaved1f1b.group_size]");
  EXPECT_EQ(refused("zerobubble", 4, 9, "schedule=interleaved_zb"),
            "job.toml:4:16: error: zerobubble: interleaved_zb: expected equal groups, so a number "
            "that micro-batches div ranks divides, 2, got 9 micro-batches; the nearest is 8 or 10 "
            "[zerobubble.microbatches]");
}

TEST(Refusals, OfStagesPerRankSayHowManyThereMayBe) {
  EXPECT_EQ(refused("interleaved1f1b", 2, 4, "schedule=1f1b stages_per_rank=2"),
            "job.toml:9:12: error: interleaved1f1b: 1f1b: expected 1 stage a rank, got 2 "
            "[interleaved1f1b.stages_per_rank]");
  EXPECT_EQ(refused("zerobubble", 2, 4, "schedule=zbv stages_per_rank=1"),
            "job.toml:9:12: error: zerobubble: zbv: expected 2 stages a rank, got 1 "
            "[zerobubble.stages_per_rank]");
  EXPECT_EQ(refused("interleaved1f1b", 2, 4, "schedule=interleaved stages_per_rank=3", 5),
            "job.toml:2:6: error: interleaved1f1b: expected at most 5 stages, one a layer of the "
            "model, got 6 on pp = 2 [interleaved1f1b.stages]");
}

TEST(Refusals, OfOptionsThatAScheduleDoesNotHave) {
  EXPECT_EQ(refused("interleaved1f1b", 2, 4, "schedule=1f1b group_size=2"),
            "job.toml:7:1: error: interleaved1f1b: expected option 'group_size' with schedule "
            "\"interleaved\" only, got \"1f1b\" [interleaved1f1b.group_size]");
  EXPECT_EQ(refused("interleaved1f1b", 2, 4, "schedule=interleaved stages_per_rank=1 overlap=true"),
            "job.toml:9:12: error: interleaved1f1b: interleaved: expected at least 2 stages a rank "
            "to overlap forwards with backwards, got 1 [interleaved1f1b.overlap]");
}

nlohmann::json rejected(const std::string& file) {
  std::ifstream stream(std::string(PIPER_SOURCE_DIR) + "/tests/data/schedules/" + file);
  return nlohmann::json::parse(stream)["rejected"];
}

// Megatron-LM refuses these groups; PyTorch takes M < R in one group, and so do we.
TEST(Refusals, AreThoseOfMegatron) {
  for (const nlohmann::json& size : rejected("megatron_interleaved_1f1b.json")) {
    const std::uint32_t ranks = size["ranks"], m = size["microbatches"], group = size["group"];
    const std::string options =
        "schedule=interleaved stages_per_rank=" + size["stages_per_rank"].dump() +
        " group_size=" + size["group"].dump();

    const bool taken = refused("interleaved1f1b", ranks, m, options).empty();

    EXPECT_EQ(taken, m < ranks && group == m) << size;
  }
}

TEST(Refusals, AreThoseOfDualPipe) {
  for (const auto& [file, schedule] :
       {std::pair<const char*, const char*>{"deepseek_dualpipe.json", "schedule=dualpipe"},
        {"deepseek_dualpipev.json", "schedule=dualpipev"},
        {"pytorch_dualpipev.json", "schedule=dualpipev"}}) {
    for (const nlohmann::json& size : rejected(file)) {
      EXPECT_NE(refused("dualpipe", size["ranks"], size["microbatches"], schedule), "") << size;
    }
  }
}

// Any number of micro-batches has a legal group where none is asked for.
TEST(Refusals, AreNoneWithoutAGroupSize) {
  for (std::uint32_t ranks = 1; ranks <= 8; ++ranks) {
    for (std::uint32_t m = 1; m <= 20; ++m) {
      EXPECT_EQ(refused("interleaved1f1b", ranks, m, "schedule=interleaved"), "") << ranks << m;
    }
  }
}

// The nearest legal value is legal.
TEST(Refusals, SayAGroupSizeThatIsTaken) {
  for (std::uint32_t ranks = 2; ranks <= 5; ++ranks) {
    for (std::uint32_t m = 1; m <= 12; ++m) {
      for (std::uint32_t group = 1; group <= 14; ++group) {
        const std::string text =
            refused("interleaved1f1b", ranks, m,
                    "schedule=interleaved group_size=" + std::to_string(group));
        const std::size_t at = text.find("nearest is ");
        if (text.empty()) {
          continue;
        }
        ASSERT_NE(at, std::string::npos) << text;
        EXPECT_EQ(refused("interleaved1f1b", ranks, m,
                          "schedule=interleaved group_size=" +
                              std::to_string(std::stoul(text.substr(at + 11)))),
                  "")
            << text;
      }
    }
  }
}

}  // namespace
}  // namespace piper

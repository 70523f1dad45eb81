// Every schedule of every size becomes a plan that the verifier passes.
#include <gtest/gtest.h>

#include "core/pipeline.h"
#include "tests/support/plugin_job.h"
#include "tests/support/toy_model.h"

namespace piper {
namespace {

struct Case {
  const char* plugin;
  const char* schedule;
  std::uint32_t stages_per_rank = 1;
  std::uint32_t least_microbatches = 0;  // for each rank
  bool even = false;                     // ranks and micro-batches
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.schedule << " " << c.stages_per_rank;
}

constexpr Case kCases[] = {
    {"interleaved1f1b", "gpipe"},
    {"interleaved1f1b", "1f1b"},
    {"interleaved1f1b", "looped_bfs", 2},
    {"interleaved1f1b", "looped_bfs", 3},
    {"interleaved1f1b", "interleaved", 1},
    {"interleaved1f1b", "interleaved", 2},
    {"interleaved1f1b", "interleaved", 3},
    {"zerobubble", "zb1p"},
    {"zerobubble", "zb_h1"},
    {"zerobubble", "interleaved_zb", 2},
    {"zerobubble", "zbv", 2},
    {"zerobubble", "v_zb", 2},
    {"zerobubble", "v_half", 2},
    {"zerobubble", "v_min", 2},
    {"dualpipe", "dualpipev", 2, 2},
    {"dualpipe", "dualpipe", 2, 2, true},
};

test::PluginJob job_of(const Case& c, std::uint32_t ranks, std::uint32_t microbatches) {
  const std::string options = std::string("schedule=") + c.schedule +
                              " stages_per_rank=" + std::to_string(c.stages_per_rank);
  return {c.plugin, ranks, 1, microbatches, test::options_of(options)};
}

bool is_legal(const Case& c, std::uint32_t ranks, std::uint32_t microbatches) {
  const bool equal_groups = microbatches % std::max(1U, microbatches / ranks) == 0;
  const bool odd = ranks % 2 != 0 || microbatches % 2 != 0;
  return microbatches >= c.least_microbatches * ranks && !(c.even && odd) &&
         (std::string(c.schedule) != "interleaved_zb" || equal_groups);
}

// "" where the plugin's proposal becomes two proven plans.
std::string problem(const test::PluginJob& job, const ModelGraph& model) {
  const auto proposals = test::propose(job, model);
  if (!proposals) {
    return to_string(proposals.error());
  }
  const auto plans = plan(test::config_of(job), model, *proposals);
  return plans ? "" : to_string(plans.error());
}

class EverySchedule : public testing::TestWithParam<Case> {};

TEST_P(EverySchedule, IsProvenForEveryNumberOfRanksAndMicrobatches) {
  const ModelGraph model = test::toy_model({.layers = 24});
  for (const std::uint32_t ranks : {1U, 2U, 3U, 4U, 8U}) {
    for (std::uint32_t m = 1; m <= 2 * ranks + 3; ++m) {
      const std::string text = problem(job_of(GetParam(), ranks, m), model);

      EXPECT_EQ(text.empty(), is_legal(GetParam(), ranks, m)) << ranks << " " << m << "\n" << text;
    }
  }
}

TEST_P(EverySchedule, TakesTiedAndFrozenParametersUnevenStagesAndReplicas) {
  ModelGraph model = test::toy_model({.layers = 12, .tied = true});
  model.regions[3].flops.per_row *= 9;
  ModelGraph frozen = test::toy_model({.layers = 12, .frozen_embedding = true});
  for (std::uint32_t p = 1; p < 7; ++p) {  // whole stages at the front
    frozen.parameters[p].frozen = true;
  }
  test::PluginJob job = job_of(GetParam(), 4, 8);
  job.dp = 2;

  EXPECT_EQ(problem(job, model), "");
  EXPECT_EQ(problem(job, frozen), "");
}

// One message for each value and gradient that crosses ranks, and no other.
TEST_P(EverySchedule, SendsWhatCrossesRanks) {
  const ModelGraph model = test::toy_model({.layers = 24});
  const test::PluginJob job = job_of(GetParam(), 4, 8);
  const auto proposals = test::propose(job, model);
  ASSERT_TRUE(proposals);
  const std::uint32_t copies = std::string(GetParam().schedule) == "dualpipe" ? 2 : 1;
  const std::uint32_t stages = 4 * GetParam().stages_per_rank / copies;

  const auto plans = plan(test::config_of(job), model, *proposals);

  ASSERT_TRUE(plans);
  std::uint32_t sends = 0;
  for (const Program& program : plans->train.programs) {
    for (const Task& task : program.tasks) {
      sends += task.op == Op::send ? 1 : 0;
    }
  }
  EXPECT_EQ(sends, test::run_at_unit_cost(test::rows_of(proposals->at(0)), stages, 8).messages);
}

TEST(Schedules, AreTakenByTorchTitansNames) {
  const std::tuple<const char*, const char*, const char*> names[] = {
      {"interleaved1f1b", "1F1B", "1f1b"},
      {"interleaved1f1b", "GPipe", "gpipe"},
      {"interleaved1f1b", "LoopedBFS", "looped_bfs"},
      {"interleaved1f1b", "Interleaved1F1B", "interleaved"},
      {"zerobubble", "InterleavedZeroBubble", "interleaved_zb"},
      {"zerobubble", "ZBVZeroBubble", "zbv"},
      {"dualpipe", "DualPipeV", "dualpipev"},
  };
  const ModelGraph model = test::toy_model({.layers = 12});
  for (const auto& [plugin, theirs, ours] : names) {
    const auto rows = [&, plugin = plugin](const char* name) {
      return test::rows_of(
          test::propose({plugin, 4, 1, 8, {{"schedule", test::text_option(name)}}}, model)->at(0));
    };

    EXPECT_EQ(rows(theirs), rows(ours)) << theirs;
  }
}

std::string name_of(const testing::TestParamInfo<Case>& parameter) {
  return std::string(parameter.param.schedule) + "_" +
         std::to_string(parameter.param.stages_per_rank);
}
INSTANTIATE_TEST_SUITE_P(Plugins, EverySchedule, testing::ValuesIn(kCases), name_of);

}  // namespace
}  // namespace piper

// What plugin zero says, and that it goes with every pipeline.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/pipeline.h"
#include "core/plugin/host.h"
#include "tests/support/plugin_job.h"
#include "tests/support/toy_model.h"

namespace piper {
namespace {

Config zero_config(const std::string& options, std::uint32_t dp = 2,
                   std::uint32_t microbatches = 2) {
  return test::config_of({"zero", 1, dp, microbatches, test::options_of(options)});
}

Expected<std::vector<Proposal>> propose_all(const Config& config, const ModelGraph& model,
                                            Diagnostics* warnings = nullptr) {
  return propose(config, model, SearchPath{{PIPER_PLUGIN_DIR}, false}, warnings);
}

// The one directive of the plugin, or why it is refused.
std::string said(const Config& config, Diagnostics* warnings = nullptr) {
  const auto proposals = propose_all(config, test::toy_model(), warnings);
  if (!proposals) {
    return to_string(proposals.error());
  }
  std::string text;
  for (const Directive& directive : proposals->at(0).directives) {
    text += what_text(directive);
  }
  return text;
}

Plan planned(const Config& config, const ModelGraph& model) {
  const auto proposals = propose_all(config, model);
  EXPECT_TRUE(proposals) << to_string(proposals.error());
  auto plans = plan(config, model, *proposals);
  EXPECT_TRUE(plans) << to_string(plans.error());
  return plans->train;
}

TEST(ZeroPlugin, ShardsTheOptimizerWhereNothingElseIsAsked) {
  EXPECT_EQ(said(zero_config("")),
            "replicate {} family=[[0, 1]] reduce_stream=reduce gather_stream=gather "
            "shard=optimizer prefetch=1 keep_gathered=chain reduce=chain bucket_bytes=26214400");
}

TEST(ZeroPlugin, ShardsWhatTheStageSays) {
  EXPECT_EQ(said(zero_config("stage=0 bucket_bytes=0")),
            "replicate {} family=[[0, 1]] reduce_stream=reduce");
  for (const auto& [stage, shard] : {std::pair{"1", "shard=optimizer prefetch"},
                                     std::pair{"2", "shard=optimizer+grads prefetch"},
                                     std::pair{"3", "shard=optimizer+grads+params prefetch"}}) {
    const std::string text = said(zero_config(std::string("stage=") + stage));
    EXPECT_NE(text.find(shard), std::string::npos) << text;
  }
}

TEST(ZeroPlugin, TakesPoliciesStreamsAndSizes) {
  EXPECT_EQ(said(zero_config("stage=3 bucket_bytes=600 prefetch=2 keep_gathered=step reduce=step "
                             "reduce_stream=r gather_stream=g")),
            "replicate {} family=[[0, 1]] reduce_stream=r gather_stream=g "
            "shard=optimizer+grads+params prefetch=2 keep_gathered=step reduce=step "
            "bucket_bytes=600");
}

TEST(ZeroPlugin, RefusesAStageThatThereIsNot) {
  EXPECT_EQ(
      said(zero_config("stage=4")),
      "job.toml:9:12: error: zero.stage: expected an integer of at least 0 and at most 3, got 4 "
      "[option.range]");
}

TEST(ZeroPlugin, RemarksAnAxisThatShardsNothing) {
  Diagnostics warnings;
  said(zero_config("stage=3 axis=pp"), &warnings);

  EXPECT_EQ(to_string(warnings),
            "job.toml:9:12: warning: zero: nothing to shard over: [mesh] pp is 1 [zero.axis]");
}

TEST(ZeroPlugin, RemarksOptionsWithoutEffectInTheStage) {
  Diagnostics warnings;
  said(zero_config("stage=1 reduce=step prefetch=2 gather_stream=g"), &warnings);

  EXPECT_EQ(
      to_string(warnings),
      "job.toml:9:12: warning: zero: option 'reduce' has no effect below stage 2, got stage 1 "
      "[zero.reduce]\njob.toml:9:12: warning: zero: option 'prefetch' has no effect below stage 3, "
      "got stage 1 [zero.prefetch]");
}

TEST(ZeroPlugin, RefusesAnAxisThatTheMeshDoesNotHave) {
  const std::string text = said(zero_config("axis=shards"));

  EXPECT_NE(text.find("[mesh.unknown_axis]"), std::string::npos) << text;
}

TEST(ZeroPlugin, ShardsOverANamedAxisAndReducesThePartsOverTheOthers) {
  Config config = zero_config("stage=3 axis=fsdp bucket_bytes=0");
  config.mesh.axes = {{"pp", 1}, {"dp", 2}, {"fsdp", 2}};
  config.training.global_batch_size = 9;

  EXPECT_EQ(said(config).find("replicate {} family=[[0, 1], [2, 3]]"), 0U) << said(config);

  const Plan plan = planned(config, test::toy_model());
  EXPECT_EQ(plan.buckets[0].shards, 2U);
  for (const Task& task : plan.programs[0].tasks) {
    if (task.op == Op::all_reduce) {
      EXPECT_EQ(plan.communicators[index(task.communicator)].ranks,
                (std::vector<std::uint32_t>{0, 2, 1, 3}));
    }
  }
}

// In stage 0 nothing but its last gradient keeps a bucket's reduction from starting, and earlier
// buckets' backwards are still to come then.
TEST(ZeroPlugin, ReducesABucketWhileTheBackwardGoesOnBeforeIt) {
  const Plan plan = planned(zero_config("stage=0 bucket_bytes=1", 2, 3), test::toy_model());
  const Program& program = plan.programs[0];
  std::uint32_t reductions = 0;
  for (const Task& task : program.tasks) {
    if (task.op != Op::all_reduce) {
      continue;
    }
    ASSERT_EQ(program.waits_of(task).size(), 1U);
    const Task& gradient = program.task(program.waits_of(task)[0].task);
    EXPECT_EQ(gradient.op, Op::backward);
    EXPECT_EQ(gradient.microbatch, 2U);
    EXPECT_EQ(plan.chunks[index(gradient.chunk)].buckets, std::vector<BucketId>{task.bucket});
    const auto later =
        std::count_if(program.tasks.begin(), program.tasks.end(),
                      [&](const Task& t) { return t.op == Op::backward && &t > &gradient; });
    EXPECT_GE(later, index(task.bucket));
    ++reductions;
  }
  EXPECT_EQ(reductions, 6U);
}

struct Pipeline {
  const char *plugin, *options;
  std::uint32_t microbatches;
};

constexpr Pipeline kPipelines[] = {
    {"interleaved1f1b", "schedule=gpipe", 5},
    {"interleaved1f1b", "schedule=1f1b", 5},
    {"interleaved1f1b", "schedule=looped_bfs stages_per_rank=2", 5},
    {"interleaved1f1b", "schedule=interleaved stages_per_rank=2", 6},
    {"zerobubble", "schedule=zb1p", 5},
    {"zerobubble", "schedule=interleaved_zb stages_per_rank=2", 4},
    {"zerobubble", "schedule=zbv", 5},
    {"zerobubble", "schedule=v_min", 5},
    {"dualpipe", "schedule=dualpipev", 5},
    {"dualpipe", "schedule=dualpipe", 6},
};

TEST(ZeroPlugin, IsProvenWithEveryPipelineInEveryStage) {
  const ModelGraph model = test::toy_model({.layers = 9, .tied = true});
  for (const Pipeline& pipeline : kPipelines) {
    for (const char* const options :
         {"stage=0", "stage=1", "stage=2", "stage=2 reduce=step", "stage=3",
          "stage=3 reduce=step keep_gathered=step", "stage=3 bucket_bytes=600"}) {
      Config config = test::config_of(
          {pipeline.plugin, 2, 2, pipeline.microbatches, test::options_of(pipeline.options)});
      config.strategies.push_back({"zero", "zero", test::options_of(options), {"job.toml", 12, 1}});
      const auto proposals = propose_all(config, model);
      ASSERT_TRUE(proposals) << to_string(proposals.error());
      const auto plans = plan(config, model, *proposals);
      EXPECT_TRUE(plans) << pipeline.options << ' ' << options << '\n'
                         << (plans ? "" : to_string(plans.error()));
    }
  }
}

}  // namespace
}  // namespace piper

// examples/upstream: every job plans, the verifier passes both plans, and their figures are those
// that the strategy has on paper.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "core/config/config.h"
#include "core/directives/toml/read.h"
#include "core/pipeline.h"
#include "tests/support/moe_model.h"

namespace piper {
namespace {

constexpr std::int64_t kMicrobatches = 4;
const std::string kFolder = PIPER_SOURCE_DIR "/examples/upstream/";

std::string content(const std::string& file) {
  std::stringstream text;
  text << std::ifstream(kFolder + file, std::ios::binary).rdbuf();
  return text.str();
}

struct Planned {
  ModelGraph model;
  Plan plan;

  // Tasks of an operation in a program, of dense parts (false), experts (true), or of no bucket.
  std::vector<Task> tasks(std::size_t program, Op op) const {
    std::vector<Task> found;
    for (const Task& task : plan.programs[program].tasks) {
      if (task.op == op) {
        found.push_back(task);
      }
    }
    return found;
  }
  std::size_t count(Op op) const {
    std::size_t sum = 0;
    for (std::size_t p = 0; p < plan.programs.size(); ++p) {
      sum += tasks(p, op).size();
    }
    return sum;
  }
  std::int64_t bytes(std::size_t program, Op op) const {
    std::int64_t sum = 0;
    for (const Task& task : tasks(program, op)) {
      sum += task.bytes.at(1);
    }
    return sum;
  }
  const Bucket& bucket(BucketId id) const { return plan.buckets[index(id)]; }
  // Buckets of a program that are not experts'.
  std::vector<BucketId> dense(std::size_t program) const {
    std::vector<BucketId> found;
    for (const BucketId id : plan.programs[program].buckets) {
      if (bucket(id).expert_parts == 1) {
        found.push_back(id);
      }
    }
    return found;
  }
  bool of_one_region(BucketId id) const {
    return std::any_of(model.regions.begin(), model.regions.end(), [&](const Region& region) {
      std::vector<ParameterId> own = region.parameters, bucketed = bucket(id).parameters;
      std::sort(own.begin(), own.end());
      std::sort(bucketed.begin(), bucketed.end());
      return own == bucketed;
    });
  }
  std::int64_t dense_bytes(std::size_t program) const {
    std::int64_t sum = 0;
    for (const BucketId id : dense(program)) {
      sum += bucket(id).bytes();
    }
    return sum;
  }
  // The groups over which a collective runs.
  std::vector<std::uint32_t> ranks(const Task& task) const {
    const Communicator& communicator = plan.communicators[index(task.communicator)];
    EXPECT_EQ(communicator.group_size, 0U);
    return communicator.ranks;
  }

  // `0F0 0B0`: the compute order of a program by stage, the pieces of a stage as one.
  std::string order(std::size_t program) const {
    const std::map<Op, std::string> names{{Op::forward, "F"},
                                          {Op::backward, "B"},
                                          {Op::backward_input, "I"},
                                          {Op::backward_weight, "W"}};
    const Program& own = plan.programs[program];
    std::string text, last;
    for (const Task& task : own.tasks_of(own.streams[0])) {
      const auto name = names.find(task.op);
      if (name == names.end()) {
        continue;
      }
      std::string action = stage(task.chunk) + name->second + std::to_string(task.microbatch);
      if (action != last) {
        text += (text.empty() ? "" : " ") + action;
      }
      last = std::move(action);
    }
    return text;
  }

  std::string stage(ChunkId chunk) const {
    for (const Tag& tag : plan.chunks[index(chunk)].tags) {
      if (plan.tag_names[index(tag.name)] == "PP") {
        return std::to_string(tag.index);
      }
    }
    return "?";
  }

  // Maximal runs of uses of a bucket in a program's compute order, with no use of another bucket in
  // between: of forward and backward, or of backward alone. From the definition, not the planner.
  std::size_t chains(std::size_t program, BucketId bucket, bool backward_alone) const {
    const Program& own = plan.programs[program];
    std::size_t runs = 0;
    bool inside = false;
    for (const Task& task : own.tasks_of(own.streams[0])) {
      if (!runs_chunk(task.op) || task.op == Op::recompute) {
        continue;
      }
      const std::vector<BucketId>& used = plan.chunks[index(task.chunk)].buckets;
      const bool uses = std::find(used.begin(), used.end(), bucket) != used.end();
      const bool counts = uses && (!backward_alone || task.op != Op::forward);
      runs += counts && !inside ? 1 : 0;
      inside = uses ? (counts || inside) : (used.empty() && inside);
    }
    return runs;
  }
};

Planned planned(const std::string& name) {
  Planned job;
  auto model = parse_model_graph(content("moe.graph"), "moe.graph");
  EXPECT_TRUE(model) << to_string(model.error());
  job.model = *std::move(model);
  const auto config = load_config(kFolder + name + ".toml", {});
  EXPECT_TRUE(config) << to_string(config.error());
  const auto said = read_directives(*config);
  EXPECT_TRUE(said) << to_string(said.error());
  auto plans = plan(*config, job.model, {*said});
  EXPECT_TRUE(plans) << to_string(plans.error());
  job.plan = plans ? std::move(plans->train) : Plan{};
  return job;
}

using Ranks = std::vector<std::uint32_t>;

// What all jobs with experts share.
void expect_experts(const Planned& job, std::size_t layers_a_program) {
  for (std::size_t p = 0; p < 2; ++p) {
    // Two all-to-alls forward and two backward for each layer and micro-batch.
    EXPECT_EQ(job.tasks(p, Op::all_to_all).size(), 4 * layers_a_program * kMicrobatches);
    for (const Task& task : job.tasks(p, Op::all_to_all)) {
      EXPECT_EQ(job.ranks(task), (p == 0 ? Ranks{0, 2} : Ranks{1, 3}));
    }
    for (const Op op : {Op::all_reduce, Op::reduce_scatter, Op::all_gather}) {
      for (const Task& task : job.tasks(p, op)) {  // each expert lives on one rank
        EXPECT_EQ(job.bucket(task.bucket).expert_parts, 1U);
      }
    }
  }
}

TEST(UpstreamExample, GraphIsTheOneThatItsMakerMakes) {
  const std::string made = print(test::moe_model());
  if (content("moe.graph") != made && std::getenv("PIPER_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(kFolder + "moe.graph", std::ios::binary) << made;
  }

  EXPECT_EQ(content("moe.graph"), made) << "run this test with PIPER_UPDATE_GOLDEN=1";
}

TEST(UpstreamExample, Pp2SendsOneValueForthAndOneBackAMicrobatch) {
  const Planned job = planned("pp2");

  ASSERT_EQ(job.plan.programs.size(), 2U);
  EXPECT_EQ(job.plan.programs[0].ranks, Ranks{0});
  EXPECT_EQ(job.plan.programs[1].ranks, Ranks{1});
  EXPECT_EQ(job.tasks(0, Op::send).size(), kMicrobatches);
  EXPECT_EQ(job.tasks(1, Op::send).size(), kMicrobatches);
  EXPECT_EQ(job.tasks(0, Op::send)[0].bytes.at(1), 512 * 1024 * 4);
  EXPECT_EQ(job.count(Op::all_reduce) + job.count(Op::all_to_all), 0U);
}

TEST(UpstreamExample, Dp2ReducesEveryGradientOnceAStep) {
  const Planned job = planned("dp2");

  std::int64_t parameters = 0;
  for (const Parameter& parameter : job.model.parameters) {
    parameters += parameter.bytes();
  }
  ASSERT_EQ(job.plan.programs.size(), 1U);
  EXPECT_EQ(job.bytes(0, Op::all_reduce), parameters);
  EXPECT_EQ(job.ranks(job.tasks(0, Op::all_reduce)[0]), (Ranks{0, 1}));
  EXPECT_EQ(job.count(Op::send) + job.count(Op::reduce_scatter), 0U);
}

TEST(UpstreamExample, Pp2Dp2Ep2ReducesDensePartsAndRoutesExperts) {
  const Planned job = planned("pp2_dp2_ep2");

  expect_experts(job, 2);
  for (std::size_t p = 0; p < 2; ++p) {
    EXPECT_EQ(job.bytes(p, Op::all_reduce), job.dense_bytes(p));
    for (const Task& task : job.tasks(p, Op::all_reduce)) {
      EXPECT_EQ(job.ranks(task), (p == 0 ? Ranks{0, 2} : Ranks{1, 3}));
    }
  }
}

TEST(UpstreamExample, Zero2ScattersEachGradientChainAndGathersOnceAStep) {
  const Planned job = planned("pp2_dp2_ep2_zero2");

  expect_experts(job, 2);
  EXPECT_EQ(job.count(Op::all_reduce), 0U);
  for (std::size_t p = 0; p < 2; ++p) {
    std::int64_t scattered = 0;
    for (const BucketId id : job.dense(p)) {
      EXPECT_EQ(job.bucket(id).zero, 2U);
      EXPECT_EQ(job.bucket(id).shards, 2U);
      scattered +=
          static_cast<std::int64_t>(job.chains(p, id, true)) * job.bucket(id).gradient_bytes();
    }
    EXPECT_EQ(job.bytes(p, Op::reduce_scatter), scattered);
    EXPECT_EQ(job.bytes(p, Op::all_gather), job.dense_bytes(p));
  }
}

TEST(UpstreamExample, Zero3GathersEachParameterChain) {
  for (const char* name : {"pp2_dp2_ep2_zero3", "pp2_dp2_ep2_bucket100"}) {
    const Planned job = planned(name);

    expect_experts(job, 2);
    EXPECT_EQ(job.count(Op::all_reduce), 0U);
    for (std::size_t p = 0; p < 2; ++p) {
      std::size_t gathers = 0, scatters = 0;
      for (const BucketId id : job.dense(p)) {
        EXPECT_EQ(job.bucket(id).zero, 3U);
        gathers += job.chains(p, id, false);
        scatters += job.chains(p, id, true);
      }
      EXPECT_EQ(job.tasks(p, Op::all_gather).size(), gathers) << name << " program " << p;
      EXPECT_EQ(job.tasks(p, Op::reduce_scatter).size(), scatters) << name << " program " << p;
    }
  }
}

TEST(UpstreamExample, Bucket100HoldsNoMoreThanThatUnlessOneRegionDoes) {
  const Planned whole = planned("pp2_dp2_ep2_zero3");
  const Planned job = planned("pp2_dp2_ep2_bucket100");

  for (std::size_t p = 0; p < 2; ++p) {
    for (const BucketId id : job.dense(p)) {
      EXPECT_TRUE(job.bucket(id).bytes() <= 100'000'000 || job.of_one_region(id));
    }
    EXPECT_GE(job.dense(p).size(), whole.dense(p).size());
  }
  EXPECT_GT(job.plan.buckets.size(), whole.plan.buckets.size());
  std::vector<ParameterId> bucketed;  // micro-batches share the one bucket of each parameter
  for (const Bucket& bucket : job.plan.buckets) {
    bucketed.insert(bucketed.end(), bucket.parameters.begin(), bucket.parameters.end());
  }
  EXPECT_EQ(bucketed.size(), job.model.parameters.size());
  EXPECT_EQ(std::set<ParameterId>(bucketed.begin(), bucketed.end()).size(), bucketed.size());
}

TEST(UpstreamExample, CustomOrderIsKept) {
  const Planned job = planned("pp2_dp2_ep2_custom_order");

  EXPECT_EQ(job.order(0), "0F0 0F1 0F2 0F3 0B0 0B1 0B2 0B3");
  const std::string second = job.order(1);
  const auto at = [&](const char* action) { return second.find(action); };
  EXPECT_LT(at("1F0"), at("1B0"));
  EXPECT_LT(at("1B0"), at("1B1"));
  EXPECT_LT(at("1F1"), at("1F2"));
  EXPECT_LT(at("1B2"), at("1B3"));
  expect_experts(job, 2);
}

TEST(UpstreamExample, InterleavedSendsAtEveryBoundary) {
  const Planned job = planned("pp4_dp2_ep2_interleaved");

  EXPECT_EQ(job.order(0), "0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3");
  EXPECT_EQ(job.order(1), "1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3");
  EXPECT_EQ(job.count(Op::send), 2 * kMicrobatches * (4 - 1));
  expect_experts(job, 2);
}

TEST(UpstreamExample, VPlacementNeedsNoMessageWhereItTurns) {
  const Planned job = planned("pp4_dp2_ep2_v_placement");

  EXPECT_EQ(job.order(0),
            "0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0F3 0I0 0W0 3F2 3I2 3W2 0I1 0W1 3F3 3I3 3W3 0I2 "
            "0W2 0I3 0W3");
  EXPECT_EQ(job.order(1),
            "1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 2W1 1F3 1I1 1W1 2F3 2I2 2W2 1I2 2I3 1I3 "
            "1W2 2W3 1W3");
  EXPECT_EQ(job.count(Op::send), 2 * kMicrobatches * (4 - 2));
  expect_experts(job, 2);
}

}  // namespace
}  // namespace piper

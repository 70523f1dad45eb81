// Recomputation in plans: what is cut, what runs when, what is kept, and what the verifier says of
// plans that do it wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "core/pipeline.h"
#include "core/plan/node_name.h"
#include "core/simulate/simulate.h"
#include "core/verify/memory.h"
#include "core/verify/verify.h"
#include "tests/support/sharded_toy.h"
#include "tests/support/toy_model.h"

namespace piper {
namespace {

using Mode = ActivationCheckpointConfig::Mode;
using test::toy_config;
using test::toy_model;
using test::toy_pipeline;

Plans planned(Mode mode, std::uint32_t pp = 1, std::uint32_t m = 2,
              const ModelGraph& model = toy_model({.layers = 2}), bool split = false,
              std::uint32_t zero = 0, const std::vector<Directive>& more = {}) {
  Config config = toy_config(pp, zero > 0 ? 2 : 1, m);
  config.activation_checkpoint.mode = mode;
  Proposal proposal = toy_pipeline(config, model);
  if (split) {
    proposal.directives.push_back({SplitBackwardDirective{{}}, proposal.from});
  }
  if (zero > 0) {
    ReplicateDirective replicate;
    replicate.shard_optimizer = true;
    replicate.shard_grads = zero > 1;
    replicate.shard_params = zero > 2;
    proposal.directives.push_back({replicate, proposal.from});
  }
  for (const Directive& directive : more) {
    proposal.directives.push_back({directive.what, proposal.from});
  }
  Expected<Plans> plans = plan(config, model, {proposal});
  PIPER_CHECK(plans.has_value(), to_string(plans.error()));
  return *std::move(plans);
}

// The computations of a program in their order: `0.1F0 0.1R0 ...`.
std::string computations(const Plan& plan, std::uint32_t program = 0) {
  const NodeNames names(plan, ModelGraph{});
  std::string text;
  for (const Task& task : plan.programs[program].tasks_of(plan.programs[program].streams[0])) {
    if (runs_chunk(task.op)) {
      const std::string name = names.of(plan, program, task);
      text += (text.empty() ? "" : " ") + name.substr(0, name.find('@'));
    }
  }
  return text;
}

const Task& task_called(const Plan& plan, const std::string& name) {
  const NodeNames names(plan, ModelGraph{});
  const Task* found = nullptr;
  for (std::uint32_t p = 0; p < plan.programs.size(); ++p) {
    for (const Task& task : plan.programs[p].tasks) {
      if (names.of(plan, p, task) == name) {
        found = &task;
      }
    }
  }
  PIPER_CHECK(found != nullptr, "no task " + name);
  return *found;
}

std::size_t count(const Plan& plan, std::uint32_t program,
                  std::span<const BufferId> (Program::*list)(const Task&) const, const Task& task,
                  Buffer::Kind kind) {
  const Program& own = plan.programs[program];
  const std::span<const BufferId> buffers = (own.*list)(task);
  return static_cast<std::size_t>(std::count_if(
      buffers.begin(), buffers.end(), [&](BufferId b) { return own.buffer(b).kind == kind; }));
}

TEST(Recomputation, RunsRightBeforeTheBackwardThatItIsFor) {
  EXPECT_EQ(computations(planned(Mode::full, 1, 1).train),
            "0.0F0 0.1F0 0.2F0 0.3F0 0.3B0 0.2R0 0.2B0 0.1R0 0.1B0 0.0B0");
}

TEST(Recomputation, RunsOnceBeforeBothHalvesOfASplitBackward) {
  const std::string order =
      computations(planned(Mode::full, 1, 1, toy_model({.layers = 1}), true).train);

  EXPECT_NE(order.find("0.1R0 0.1BI0"), std::string::npos) << order;
  EXPECT_EQ(order.find("0.1R0"), order.rfind("0.1R0")) << order;
}

TEST(Recomputation, IsTheSameWhereADirectiveAsksForIt) {
  const Filter layers{{{"layer", Condition::Kind::present, {}}}, {}};
  const ModelGraph model = toy_model({.layers = 3});

  const Plan said =
      planned(Mode::none, 2, 4, model, false, 3, {{RecomputeDirective{layers}, {}}}).train;

  EXPECT_EQ(print(said, model), print(planned(Mode::full, 2, 4, model, false, 3).train, model));
}

TEST(Recomputation, IsNotInAPlanThatEvaluates) {
  const Plans plans = planned(Mode::full);

  EXPECT_EQ(computations(plans.evaluate).find('R'), std::string::npos);
  EXPECT_EQ(plans.evaluate.chunks.size(), plans.train.chunks.size());
}

TEST(Recomputation, LeavesBucketsAsTheyAre) {
  for (const bool tied : {false, true}) {
    for (const std::uint32_t zero : {0U, 3U}) {
      const ModelGraph model = toy_model({.layers = 3, .tied = tied});
      EXPECT_TRUE(planned(Mode::full, 2, 2, model, false, zero).train.buckets ==
                  planned(Mode::none, 2, 2, model, false, zero).train.buckets);
    }
  }
}

TEST(Recomputation, KeepsOnlyInputsBetweenForwardAndBackward) {
  const Plan plan = planned(Mode::full, 1, 1).train;
  const Task &forward = task_called(plan, "0.1F0@0"), &again = task_called(plan, "0.1R0@0"),
             &backward = task_called(plan, "0.1B0@0");

  EXPECT_EQ(count(plan, 0, &Program::writes_of, forward, Buffer::Kind::saved), 0U);
  EXPECT_EQ(count(plan, 0, &Program::reads_of, again, Buffer::Kind::activation), 1U);
  EXPECT_EQ(count(plan, 0, &Program::reads_of, again, Buffer::Kind::parameter), 1U);
  EXPECT_EQ(count(plan, 0, &Program::writes_of, again, Buffer::Kind::saved), 1U);
  EXPECT_EQ(count(plan, 0, &Program::writes_of, again, Buffer::Kind::activation), 0U);
  EXPECT_EQ(count(plan, 0, &Program::reads_of, backward, Buffer::Kind::activation), 1U);
}

TEST(Recomputation, GoesOnWhileTheGradientArrives) {
  const Plan plan = planned(Mode::full, 2, 4, toy_model({.layers = 2})).train;
  const NodeNames names(plan, ModelGraph{});
  const Program& program = plan.programs[0];
  const Task &again = task_called(plan, "0.1R0@0"), &backward = task_called(plan, "0.1B0@0");
  const auto waits_for_gradient = [&](const Task& task) {
    const auto waits = program.waits_of(task);
    return std::any_of(waits.begin(), waits.end(),
                       [&](const Wait& wait) { return program.task(wait.task).op == Op::recv; });
  };

  EXPECT_FALSE(waits_for_gradient(again));
  EXPECT_TRUE(waits_for_gradient(backward));
}

TEST(Recomputation, IsOfTheSameGatherAsItsBackward) {
  const Plan plan = planned(Mode::full, 1, 2, toy_model({.layers = 2}), false, 3).train;
  const auto gathered = [&](const std::string& name) {
    for (const BufferId b : plan.programs[0].reads_of(task_called(plan, name))) {
      if (plan.programs[0].buffer(b).kind == Buffer::Kind::gathered) {
        return index(b);
      }
    }
    return 0xffffffffU;
  };

  EXPECT_NE(gathered("0.1R0@0"), 0xffffffffU);
  EXPECT_EQ(gathered("0.1R0@0"), gathered("0.1B0@0"));
}

TEST(Recomputation, CostsWhatTheForwardDoes) {
  const Plan plan = planned(Mode::full, 1, 1).train;

  EXPECT_EQ(Costs().of(task_called(plan, "0.1R0@0")), Costs().of(task_called(plan, "0.1F0@0")));
  // Four forwards, two of them again, and four backwards.
  const Expected<Simulation> run = simulate(plan, durations_of(plan, Costs()));
  ASSERT_TRUE(run.has_value());
  const auto span = [&](const std::string& name) {
    const Task& task = task_called(plan, name);
    return run->times[0][static_cast<std::size_t>(&task - plan.programs[0].tasks.data())];
  };
  EXPECT_EQ(span("0.0B0@0").end - span("0.0F0@0").begin, (4 + 2 + 2 * 4) * kUnit);
}

// 1F1B on two ranks: of two micro-batches in flight on the first, one holds the inputs of its four
// layers, and one layer is there as a whole.
TEST(Recomputation, TakesLessMemory) {
  std::ifstream file(PIPER_SOURCE_DIR "/tests/data/graphs/qwen3_debug_8_layers.graph");
  std::stringstream text;
  text << file.rdbuf();
  const Expected<ModelGraph> model = parse_model_graph(text.str(), "debug.graph");
  ASSERT_TRUE(model.has_value()) << to_string(model.error());
  const auto activations = [&](Mode mode, std::uint32_t program) {
    const Plan plan = planned(mode, 2, 8, *model).train;
    return memory_peak(plan, *model, program, 0)
        .of_kind[static_cast<std::size_t>(MemoryKind::activation)];
  };

  for (const std::uint32_t program : {0U, 1U}) {
    const std::int64_t none = activations(Mode::none, program),
                       full = activations(Mode::full, program);
    std::printf("  rank %u: activations %.2f MiB, recomputed %.2f MiB\n", program,
                static_cast<double>(none) / (1 << 20), static_cast<double>(full) / (1 << 20));
    EXPECT_LT(full * 2, none);
  }
}

// Wrong plans.

std::string verdict(const std::function<void(Plan&)>& change) {
  const ModelGraph model = toy_model({.layers = 2});
  Plan plan = planned(Mode::full, 1, 1).train;
  EXPECT_TRUE(verify(plan, model).has_value());
  change(plan);
  const Status status = verify(plan, model);
  return status ? "accepted" : to_string(status.error());
}

std::uint32_t chunk_of(const Plan& plan, const std::string& name) {
  return index(task_called(plan, name).chunk);
}

TEST(Recomputation, IsMissedWhereTheChunkAsksForIt) {
  const std::string text = verdict([](Plan& plan) { plan.chunks[0].recompute = true; });

  EXPECT_NE(text.find("expected one recompute, got no"), std::string::npos) << text;
}

TEST(Recomputation, IsRefusedWhereTheChunkDoesNotAskForIt) {
  const std::string text =
      verdict([](Plan& plan) { plan.chunks[chunk_of(plan, "0.1R0@0")].recompute = false; });

  EXPECT_NE(text.find("expected no recompute, got one"), std::string::npos) << text;
}

TEST(Recomputation, IsRefusedAfterItsBackward) {
  const std::string text = verdict([](Plan& plan) {
    Program& program = plan.programs[0];
    const auto at = &task_called(plan, "0.1R0@0") - program.tasks.data();
    std::swap(program.tasks[static_cast<std::size_t>(at)],
              program.tasks[static_cast<std::size_t>(at) + 1]);
  });

  EXPECT_NE(text.find("error"), std::string::npos) << text;
}

TEST(Recomputation, IsRefusedOfWhatHasNothingToDifferentiate) {
  const ModelGraph model = toy_model({.layers = 2, .frozen_embedding = true});
  Plan plan = planned(Mode::full, 1, 1, model).train;
  ASSERT_FALSE(plan.chunks[0].has_backward);
  plan.chunks[0].recompute = true;

  const Status status = verify(plan, model);

  ASSERT_FALSE(status.has_value());
  EXPECT_NE(to_string(status.error()).find("is recomputed but has nothing to differentiate"),
            std::string::npos);
}

}  // namespace
}  // namespace piper

// From annotations to plans: chunks, buckets, orders, communication, waits.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "core/directives/annotate.h"
#include "core/lower/communicate.h"
#include "core/lower/expand.h"
#include "core/lower/fuse.h"
#include "core/pipeline.h"
#include "tests/support/toy_model.h"

namespace piper {
namespace {

using test::toy_config;
using test::toy_model;
using test::toy_pipeline;

const Provenance kFrom{"zig", {"job.toml", 9, 1}};

Expected<Plans> planned(std::uint32_t pp, std::uint32_t dp, std::uint32_t m,
                        const ModelGraph& model, bool gpipe = false) {
  const Config config = toy_config(pp, dp, m);
  return plan(config, model, {toy_pipeline(config, model, gpipe)});
}

std::size_t count(const Program& program, Op op) {
  return static_cast<std::size_t>(std::count_if(program.tasks.begin(), program.tasks.end(),
                                                [&](const Task& t) { return t.op == op; }));
}

std::string compute_order(const Plan& plan, std::uint32_t program) {
  std::string text;
  for (const Task& task : plan.programs[program].tasks_of(plan.programs[program].streams[0])) {
    if (task.op == Op::forward || task.op == Op::backward) {
      text += (text.empty() ? "" : " ") + std::string(task.op == Op::forward ? "F" : "B") +
              std::to_string(task.microbatch);
    }
  }
  return text;
}

Expected<Expanded> expanded(const std::vector<Directive>& directives, std::uint32_t m = 2) {
  Proposal proposal;
  proposal.from = kFrom;
  proposal.claims = {{Claim::Kind::axis, "pp", kFrom}};
  for (Directive directive : directives) {
    directive.from = kFrom;
    proposal.directives.push_back(std::move(directive));
  }
  const Config config = toy_config(1, 1, m);
  PIPER_ASSIGN(const Annotated dag, annotate(config, toy_model({.layers = 2}), {proposal}));
  PIPER_ASSIGN(Dag tables, fuse(dag, config, Plan::Kind::train));
  return expand(std::move(tables), dag);
}

const Directive kWhole{TagDirective{{}, "PP", 0}, {}};
Directive chain(std::vector<Action> actions) {
  return {OrderChainDirective{{{0}}, std::move(actions)}, {}};
}

std::string refusal(const std::vector<Directive>& directives) {
  const Expected<Expanded> result = expanded(directives);
  return result ? "accepted" : to_string(result.error());
}

TEST(Plan, IsProvenForEveryShapeOfPipelineAndReplicas) {
  for (const std::uint32_t pp : {1U, 2U, 3U, 4U}) {
    for (const std::uint32_t dp : {1U, 2U, 3U}) {
      for (const std::uint32_t m : {1U, 2U, 3U, 8U}) {
        for (const bool tied : {false, true}) {
          for (const bool gpipe : {false, true}) {
            const Expected<Plans> plans =
                planned(pp, dp, m, toy_model({.layers = 4, .tied = tied}), gpipe);
            ASSERT_TRUE(plans) << pp << "x" << dp << " M " << m << ": " << to_string(plans.error());
          }
        }
      }
    }
  }
}

TEST(Plan, KeepsTheOrderThatTheStrategyGave) {
  const Expected<Plans> plans = planned(2, 1, 4, toy_model());

  ASSERT_TRUE(plans);
  EXPECT_EQ(compute_order(plans->train, 0), "F0 F1 B0 F2 B1 F3 B2 B3");
  EXPECT_EQ(compute_order(plans->train, 1), "F0 B0 F1 B1 F2 B2 F3 B3");
  EXPECT_EQ(compute_order(plans->evaluate, 0), "F0 F1 F2 F3");
}

TEST(Plan, IsTheSameTextWhenPlannedAgain) {
  const ModelGraph model = toy_model({.layers = 4, .tied = true});
  const Expected<Plans> first = planned(4, 2, 8, model), second = planned(4, 2, 8, model);

  ASSERT_TRUE(first && second);
  EXPECT_EQ(print(first->train, model), print(second->train, model));
  EXPECT_EQ(print(first->evaluate, model), print(second->evaluate, model));
}

TEST(Plan, HasAsManyNodesForManyReplicasAsForOne) {
  const Expected<Plans> one = planned(4, 1, 8, toy_model()), many = planned(4, 256, 8, toy_model());

  ASSERT_TRUE(one && many);
  for (std::size_t p = 0; p < 4; ++p) {
    const std::size_t reductions = count(many->train.programs[p], Op::all_reduce);
    EXPECT_EQ(many->train.programs[p].tasks.size(),
              one->train.programs[p].tasks.size() + reductions);
  }
}

TEST(Plan, EvaluatesWithoutBackwardOrUpdate) {
  const Expected<Plans> plans = planned(2, 2, 3, toy_model({.layers = 4, .tied = true}));

  ASSERT_TRUE(plans);
  for (const Program& program : plans->evaluate.programs) {
    EXPECT_EQ(count(program, Op::forward), 3U);
    EXPECT_EQ(count(program, Op::loss_report), 1U);
    for (const Op op : {Op::backward, Op::all_reduce, Op::grad_norm, Op::update}) {
      EXPECT_EQ(count(program, op), 0U);
    }
  }
}

TEST(Fuse, MakesOneChunkOfAStage) {
  const Expected<Plans> plans = planned(2, 1, 1, toy_model({.layers = 4}));

  ASSERT_TRUE(plans);
  ASSERT_EQ(plans->train.chunks.size(), 2U);
  EXPECT_EQ(plans->train.chunks[0].regions.size(), 3U);
  EXPECT_EQ(plans->train.chunks[1].outputs, std::vector<ValueId>{});
  EXPECT_TRUE(plans->train.chunks[1].has_loss);
}

// Two towers that meet in the last region: a (0, 1) and b (2, 3), then 4.
ModelGraph two_towers() {
  ModelGraph model = toy_model({.layers = 3});
  model.regions[2].inputs = {ValueId{0}};
  model.regions[4].inputs = {model.regions[1].outputs[0], model.regions[3].outputs[0],
                             model.labels};
  return model;
}

TEST(Fuse, KeepsIndependentBranchesApart) {
  const Config config = toy_config(1, 1, 1);
  const Expected<Annotated> annotated = annotate(config, two_towers(), {});
  ASSERT_TRUE(annotated);

  const Expected<Dag> dag = fuse(*annotated, config, Plan::Kind::train);

  ASSERT_TRUE(dag);
  ASSERT_EQ(dag->chunks.size(), 3U);
  EXPECT_EQ(dag->chunks[0].regions, (std::vector<RegionId>{RegionId{0}, RegionId{1}}));
  EXPECT_EQ(dag->chunks[1].regions, (std::vector<RegionId>{RegionId{2}, RegionId{3}}));
  EXPECT_EQ(dag->chunks[2].inputs.size(), 3U);
}

TEST(Fuse, PutsTowersOnRanksOfTheirOwn) {
  Config config = toy_config(2, 1, 3);
  Proposal proposal;
  proposal.claims = {{Claim::Kind::axis, "pp", kFrom}};
  const auto place = [&](std::uint32_t first, std::uint32_t last, std::uint32_t rank) {
    proposal.directives.push_back(
        {PlaceDirective{
             {{{"REGION", Condition::Kind::in_range, {first, last}}}, {}}, {{rank}}, "compute"},
         kFrom});
  };
  place(0, 1, 0);
  place(2, 4, 1);

  const Expected<Plans> plans = plan(config, two_towers(), {proposal});

  ASSERT_TRUE(plans) << to_string(plans.error());
  EXPECT_EQ(count(plans->train.programs[0], Op::send), 3U);
  EXPECT_EQ(count(plans->train.programs[0], Op::recv), 3U);
}

TEST(Buckets, GiveATiedParameterOneReductionOverAllItsHomes) {
  const Expected<Plans> plans = planned(4, 2, 2, toy_model({.layers = 4, .tied = true}));

  ASSERT_TRUE(plans);
  const Plan& train = plans->train;
  ASSERT_TRUE(train.buckets[0].tied);
  EXPECT_EQ(train.buckets[0].homes, (std::vector<std::uint32_t>{0, 3}));
  for (const std::uint32_t p : {0U, 3U}) {
    const auto& tasks = train.programs[p].tasks;
    const auto reduction = std::find_if(tasks.begin(), tasks.end(), [](const Task& t) {
      return t.op == Op::all_reduce && t.bucket == BucketId{0};
    });
    ASSERT_NE(reduction, tasks.end());
    EXPECT_EQ(train.communicators[index(reduction->communicator)].ranks,
              (std::vector<std::uint32_t>{0, 1, 6, 7}));
  }
}

TEST(Buckets, SplitByOptimizerGroup) {
  Config config = toy_config(1, 1, 1);
  config.optimizer.groups.push_back({{"layers.1.*"}, 0.5, std::nullopt, {}});

  const Expected<Plans> plans = plan(config, toy_model({.layers = 3}), {});

  ASSERT_TRUE(plans);
  ASSERT_EQ(plans->train.buckets.size(), 2U);
  EXPECT_EQ(plans->train.buckets[1].parameters.size(), 1U);
  EXPECT_EQ(plans->train.buckets[1].optimizer_group, 0U);
  EXPECT_EQ(plans->train.buckets[0].optimizer_group, 1U);
}

TEST(Frozen, NeverGetsGradientsReductionsOrUpdates) {
  ModelGraph model = toy_model({.layers = 4});
  for (Parameter& parameter : model.parameters) {
    parameter.frozen = parameter.name != "head.weight" && parameter.name != "layers.3.weight";
  }

  const Expected<Plans> plans = planned(2, 2, 3, model);

  ASSERT_TRUE(plans) << to_string(plans.error());
  const Program& first = plans->train.programs[0];
  EXPECT_EQ(count(first, Op::backward), 0U);
  EXPECT_EQ(count(first, Op::recv), 0U);
  EXPECT_EQ(count(first, Op::update), 0U);
  EXPECT_EQ(count(plans->train.programs[1], Op::update), 1U);
  EXPECT_TRUE(std::none_of(first.buffers.begin(), first.buffers.end(), [](const Buffer& b) {
    return b.kind == Buffer::Kind::optimizer || b.kind == Buffer::Kind::parameter_gradient;
  }));
}

TEST(Unused, ParametersAreUpdatedWithoutAGradient) {
  ModelGraph model = toy_model({.layers = 2});
  Parameter unused = model.parameters[1];
  unused.name = "unused";
  model.parameters.push_back(unused);

  const Expected<Plans> plans = planned(2, 2, 2, model);

  ASSERT_TRUE(plans) << to_string(plans.error());
  EXPECT_EQ(plans->train.buckets.back().homes, std::vector<std::uint32_t>{0});
  EXPECT_EQ(count(plans->train.programs[0], Op::update), 2U);
}

TEST(SplitBackward, MakesTwoPassesThatThePlanOrders) {
  Config config = toy_config(1, 1, 2);
  Proposal proposal;
  proposal.from = kFrom;
  proposal.directives = {{SplitBackwardDirective{{}}, kFrom}};

  const Expected<Plans> plans = plan(config, toy_model({.layers = 2}), {proposal});

  ASSERT_TRUE(plans) << to_string(plans.error());
  EXPECT_EQ(count(plans->train.programs[0], Op::backward_input), 2U);
  EXPECT_EQ(count(plans->train.programs[0], Op::backward_weight), 2U);
  EXPECT_EQ(count(plans->train.programs[0], Op::backward), 0U);
}

TEST(Chain, RefusesAStageThatThePlaceDoesNotRun) {
  EXPECT_EQ(refusal({kWhole, chain({{1, 0, Pass::forward}})}),
            "job.toml:9:1: error: zig: order_chain: action 1F0: this place runs no stage 1 "
            "[order.action]");
}

TEST(Chain, RefusesAMicrobatchPastTheLast) {
  EXPECT_EQ(
      refusal({kWhole, chain({{0, 2, Pass::forward}})}),
      "job.toml:9:1: error: zig: order_chain: action 0F2: expected a micro-batch below 2, got 2 "
      "[order.action]");
}

TEST(Chain, RefusesAnActionTwice) {
  EXPECT_EQ(refusal({kWhole, chain({{0, 1, Pass::forward}, {0, 1, Pass::forward}})}),
            "job.toml:9:1: error: zig: order_chain: action 0F1 is there twice [order.twice]");
}

TEST(Chain, RefusesHalvesOfABackwardThatIsWhole) {
  EXPECT_EQ(refusal({kWhole, chain({{0, 1, Pass::backward_input}})}),
            "job.toml:9:1: error: zig: order_chain: action 0BI1: the stage's backward is not split "
            "(split_backward) [order.action]");
}

TEST(Chain, RefusesABackwardBeforeItsForwardWithTheCycle) {
  Config config = toy_config(1, 1, 1);
  Proposal proposal;
  proposal.from = kFrom;
  proposal.directives = {kWhole, chain({{0, 0, Pass::backward}, {0, 0, Pass::forward}})};
  for (Directive& directive : proposal.directives) {
    directive.from = kFrom;
  }

  const Expected<Plans> plans = plan(config, toy_model({.layers = 2}), {proposal});

  ASSERT_FALSE(plans);
  EXPECT_EQ(to_string(plans.error()),
            "job.toml:9:1: error: zig: the orders and the data they need form a cycle of 2 tasks "
            "[order.cycle]\n"
            "note: 0F0@0 comes before 0B0@0: what it keeps for the backward\n"
            "job.toml:9:1: note: 0B0@0 comes before 0F0@0: order_chain of zig on rank 0, action 1 "
            "before action 2");
}

// Rank 1 runs micro-batch 1 whole before micro-batch 0, rank 0 waits for 0's backward before 1.
std::string crossed_orders(std::int64_t receive_distance, bool complete) {
  Config config = toy_config(2, 1, 3);
  config.comm.receive_distance = receive_distance;
  const Pass F = Pass::forward, B = Pass::backward;
  std::vector<Action> first{{0, 0, F}, {0, 0, B}, {0, 1, F}, {0, 1, B}, {0, 2, F}, {0, 2, B}};
  std::vector<Action> second{{1, 1, F}, {1, 1, B}, {1, 2, F}, {1, 0, F}, {1, 0, B}, {1, 2, B}};
  if (!complete) {
    first.pop_back();
  }
  Proposal proposal;
  proposal.from = kFrom;
  proposal.claims = {{Claim::Kind::axis, "pp", kFrom}};
  const auto stage = [](std::uint32_t from, std::uint32_t to) {
    return Filter{{{"REGION", Condition::Kind::in_range, {from, to}}}, {}};
  };
  proposal.directives = {{TagDirective{stage(0, 1), "PP", 0}, kFrom},
                         {TagDirective{stage(2, 3), "PP", 1}, kFrom},
                         {PlaceDirective{stage(0, 1), {{0}}, "compute"}, kFrom},
                         {PlaceDirective{stage(2, 3), {{1}}, "compute"}, kFrom},
                         {OrderChainDirective{{{0}}, first}, kFrom},
                         {OrderChainDirective{{{1}}, second}, kFrom}};
  const auto plans = plan(config, toy_model({.layers = 2}), {proposal});
  return plans ? "planned" : to_string(plans.error());
}

TEST(Chain, OfOrdersThatWaitForEachOtherShowsTheShortestCycle) {
  const std::string text = crossed_orders(1, true);

  EXPECT_EQ(text,
            "job.toml:9:1: error: zig: the orders and the data they need form a cycle of 6 tasks "
            "[order.cycle]\n"
            "note: 1B0@1 comes before send grad %3 1 m0@1: gradient %3\n"
            "note: send grad %3 1 m0@1 comes before 0B0@0: gradient %3\n"
            "job.toml:9:1: note: 0B0@0 comes before 0F1@0: order_chain of zig on rank 0, action 2 "
            "before action 3\n"
            "note: 0F1@0 comes before send %3 m1@0: activation %3\n"
            "note: send %3 m1@0 comes before 1F1@1: activation %3\n"
            "job.toml:9:1: note: 1F1@1 comes before 1B0@1: order_chain of zig on rank 1, action 1 "
            "before action 5");
  for (const std::int64_t distance : {0, 2, 10000}) {
    EXPECT_EQ(crossed_orders(distance, true), text) << distance;
  }
  EXPECT_EQ(crossed_orders(1, false), text) << "where the planner orders the rest";
}

TEST(Chain, WarnsOfWhatItLeavesOut) {
  Diagnostics warnings;
  Proposal proposal;
  proposal.from = kFrom;
  proposal.directives = {kWhole, chain({{0, 0, Pass::forward}, {0, 0, Pass::backward}})};
  for (Directive& directive : proposal.directives) {
    directive.from = kFrom;
  }
  const auto planned = [&](std::uint32_t microbatches) {
    warnings.clear();
    const auto plans = plan(toy_config(1, 1, microbatches), toy_model({.layers = 2}), {proposal},
                            [&](const Phase& phase) {
                              if (const auto* now = std::get_if<const Expanded*>(&phase.value)) {
                                const Diagnostics& found = (*now)->warnings;
                                warnings.insert(warnings.end(), found.begin(), found.end());
                              }
                            });
    EXPECT_TRUE(plans) << to_string(plans.error());
    return to_string(warnings);
  };

  EXPECT_EQ(planned(1), "");
  EXPECT_EQ(planned(2),
            "job.toml:9:1: warning: zig: order_chain on rank 0 leaves out 0F1, 0B1; what is left "
            "out is placed by cost [order.left_out]");
  EXPECT_EQ(planned(4),
            "job.toml:9:1: warning: zig: order_chain on rank 0 leaves out 0F1, 0F2, 0F3 and 3 "
            "more; what is left out is placed by cost [order.left_out]");
}

TEST(Chain, RefusesToBeEmpty) {
  EXPECT_EQ(refusal({kWhole, chain({})}),
            "job.toml:9:1: error: zig: order_chain: expected actions, got none [order.chain]");
}

TEST(Order, PutsGroupsOneAfterAnother) {
  const Filter second{{{"MB", Condition::Kind::equals, {1}}}, {Pass::forward}};
  const Filter first{{{"MB", Condition::Kind::equals, {0}}}, {Pass::forward}};
  Config config = toy_config(1, 1, 2);
  Proposal proposal;
  proposal.from = kFrom;
  proposal.directives = {{OrderDirective{{{second}, {first}}}, kFrom}};

  const Expected<Plans> plans = plan(config, toy_model({.layers = 2}), {proposal});

  ASSERT_TRUE(plans) << to_string(plans.error());
  EXPECT_EQ(compute_order(plans->train, 0).find("F1"), 0U);
}

TEST(Order, RefusesAGroupThatMatchesNothing) {
  const Filter none{{{"MB", Condition::Kind::equals, {9}}}, {}};
  EXPECT_EQ(refusal({{OrderDirective{{{Filter{}}, {none}}}, {}}}),
            "job.toml:9:1: error: zig: order: group 2 {MB=9} matches nothing [order.no_match]");
}

TEST(Place, RefusesNeighboursOfDifferentSize) {
  Config config = toy_config(3, 1, 1);
  Proposal proposal;
  proposal.from = kFrom;
  proposal.claims = {{Claim::Kind::axis, "pp", kFrom}};
  proposal.directives = {
      {PlaceDirective{{{{"REGION", Condition::Kind::in_range, {0, 1}}}, {}}, {{0}}, "compute"},
       kFrom},
      {PlaceDirective{{{{"REGION", Condition::Kind::in_range, {2, 3}}}, {}}, {{1, 2}}, "compute"},
       kFrom}};

  const Expected<Plans> plans = plan(config, toy_model({.layers = 2}), {proposal});

  ASSERT_FALSE(plans);
  EXPECT_EQ(to_string(plans.error()),
            "job.toml:9:1: error: region 2 layer=1 (toy.cc:12) is placed on 2 ranks and reads a "
            "value made on 1; "
            "expected groups of equal size [place.group_size]\n"
            "job.toml:9:1: note: the producer's place");
}

TEST(Waits, ReceivesArePostedAheadButNotWithoutLimit) {
  const Expected<Plans> plans = planned(2, 1, 8, toy_model());
  ASSERT_TRUE(plans);
  const Program& last = plans->train.programs[1];

  std::set<std::int64_t> places;
  for (const Buffer& buffer : last.buffers) {
    if (buffer.in_arena()) {
      places.insert(buffer.offset);
    }
  }

  EXPECT_LE(places.size(), 4U) << "receives of all micro-batches share few places";
}

}  // namespace
}  // namespace piper

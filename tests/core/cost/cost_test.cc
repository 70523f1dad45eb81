#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "core/cost/costs.h"
#include "core/pipeline.h"
#include "tests/support/toy_model.h"

namespace piper {
namespace {

std::string errors_of(const auto& result) {
  return result ? "" : to_string(result.error());
}

TEST(Machine, IsReadFromItsFile) {
  const auto machine = parse_machine(
      "name = \"two nodes\"\ntflops = 200\nmemory_gbps = 8000\nranks_per_node = 4\n"
      "[node]\nlatency_us = 2\ngbps = 800\n[network]\nlatency_us = 20\n",
      "machine.toml");

  ASSERT_TRUE(machine) << errors_of(machine);
  EXPECT_EQ(machine->name, "two nodes");
  EXPECT_EQ(machine->tflops, 200);
  EXPECT_EQ(machine->ranks_per_node, 4U);
  EXPECT_EQ(machine->node.gbps, 800);
  EXPECT_EQ(machine->network.latency_us, 20);
  EXPECT_EQ(machine->network.gbps, Machine().network.gbps) << "not given: the generic machine's";
}

TEST(Machine, OfTheExamplesIsRead) {
  std::ifstream file(PIPER_SOURCE_DIR "/examples/machines/h200.toml");
  const auto machine =
      parse_machine(std::string{std::istreambuf_iterator<char>(file), {}}, "h200.toml");

  ASSERT_TRUE(machine) << errors_of(machine);
  EXPECT_EQ(machine->tflops, 500);
  EXPECT_EQ(machine->network.gbps, 350);
}

TEST(Machine, RefusesEveryMistakeWithItsPlace) {
  EXPECT_EQ(errors_of(parse_machine("tflop = 200\nmemory_gbps = 0\n[node]\ngbps = \"fast\"\n",
                                    "machine.toml")),
            "machine.toml:2:15: error: memory_gbps: expected a number from 1e-06 to "
            "1e+12, got 0 [cost.range]\n"
            "machine.toml:4:8: error: node.gbps: expected a number, got \"fast\" [cost.type]\n"
            "machine.toml:1:1: error: unknown key 'tflop' (did you mean 'tflops'?) [cost.key]");
}

TEST(MeasuredCosts, AreReadFromTheirFile) {
  const auto costs = parse_measured(
      "[[cost]]\nop = \"forward\"\nregions = \"0..3\"\nus = 12.5\n"
      "[[cost]]\nop = \"backward\"\nregions = 4\nus = 3\n",
      "costs.toml");

  ASSERT_TRUE(costs) << errors_of(costs);
  ASSERT_EQ(costs->size(), 2U);
  EXPECT_EQ((*costs)[0].last, 3U);
  EXPECT_EQ((*costs)[0].us, 12.5);
  EXPECT_EQ((*costs)[1].op, Op::backward);
  EXPECT_EQ((*costs)[1].first, 4U);
}

TEST(MeasuredCosts, RefuseEveryMistakeWithItsPlace) {
  EXPECT_EQ(
      errors_of(parse_measured("[[cost]]\nop = \"forwards\"\nregions = \"4..3\"\n", "costs.toml")),
      "costs.toml:2:6: error: cost.op: unknown pass \"forwards\" (did you mean 'forward'?) "
      "[cost.op]\n"
      "costs.toml:3:11: error: cost.regions: expected a region or a range of them, as in "
      "\"0..4\", got \"4..3\" [cost.range]\n"
      "costs.toml:1:1: error: [[cost]]: expected the key 'us' [cost.key]");
  EXPECT_EQ(errors_of(parse_measured("[[cost]]\nop = \"forward\"\nregions = \"0..3\"\nus = 1\n"
                                     "[[cost]]\nop = \"forward\"\nregions = 2\nus = 1\n",
                                     "costs.toml")),
            "costs.toml:5:1: error: [[cost]]: a second cost of op = \"forward\" for region 2 "
            "[cost.twice]\n"
            "costs.toml:1:1: note: the first is here");
  EXPECT_EQ(errors_of(parse_measured("[[cost]]\nop = \"forward\"\nregions = 0\nus = 1e16\n",
                                     "costs.toml")),
            "costs.toml:4:6: error: cost.us: expected a number from 0 to 1e+09, got 1e+16 "
            "[cost.range]");
}

// Four stages of a toy model on two ranks, planned without a plugin.
struct ToyJob {
  explicit ToyJob(std::uint32_t pp = 2, std::uint32_t dp = 1) {
    config = test::toy_config(pp, dp, 4);
    plans = *plan(config, model, {test::toy_pipeline(config, model)});
  }
  ModelGraph model = test::toy_model({4});
  Config config;
  Plans plans;
};

const Task& first_task(const Plan& plan, Op op) {
  for (const Program& program : plan.programs) {
    const auto found = std::find_if(program.tasks.begin(), program.tasks.end(),
                                    [op](const Task& task) { return task.op == op; });
    if (found != program.tasks.end()) {
      return *found;
    }
  }
  ADD_FAILURE() << "no such task";
  std::abort();
}

TEST(UnitCosts, GiveABackwardTwiceAForward) {
  const ToyJob job;
  const Costs costs = *make_costs({}, scope_of(job.plans.train), job.model);

  EXPECT_EQ(costs.of(first_task(job.plans.train, Op::forward)), kUnit);
  EXPECT_EQ(costs.of(first_task(job.plans.train, Op::backward)), 2 * kUnit);
}

TEST(AnalyticalCosts, AreARooflineOfTheMachine) {
  const ToyJob job;
  CostModel model;
  model.kind = CostModel::Kind::analytical;
  model.machine.tflops = 1e-9;  // 1000 operations a second
  model.machine.memory_gbps = 1e9;
  const Task& forward = first_task(job.plans.train, Op::forward);
  std::int64_t flops = 0;
  for (const RegionId region : job.plans.train.chunks[index(forward.chunk)].regions) {
    flops += job.model.region(region).flops.at(2);  // the largest of 5 rows in 4 micro-batches
  }
  const auto compute_bound = make_costs(model, scope_of(job.plans.train), job.model);
  EXPECT_EQ(compute_bound->of(forward), static_cast<std::uint64_t>(flops) * 1'000'000U);
  EXPECT_EQ(compute_bound->of(first_task(job.plans.train, Op::backward)) % 2, 0U);

  model.machine.tflops = 1e9;
  model.machine.memory_gbps = 8e-9;  // one byte a second
  const auto memory_bound = make_costs(model, scope_of(job.plans.train), job.model);
  EXPECT_GT(memory_bound->of(forward), 1'000'000'000U);
}

// A sum over a whole plan must still fit.
TEST(AnalyticalCosts, AreAThousandSecondsAtMost) {
  const ToyJob job;
  CostModel model;
  model.kind = CostModel::Kind::analytical;
  model.machine.tflops = 1e-300;

  const auto costs = make_costs(model, scope_of(job.plans.train), job.model);

  EXPECT_EQ(costs->of(first_task(job.plans.train, Op::forward)), 1'000'000'000'000U);
}

TEST(AnalyticalCosts, UseTheSlowerLinkBetweenNodes) {
  const ToyJob job;
  CostModel model;
  model.kind = CostModel::Kind::analytical;
  model.machine.node = {1, 8};       // 1000 ns and 1 ns a byte
  model.machine.network = {100, 4};  // 100000 ns and 2 ns a byte
  const Task& send = first_task(job.plans.train, Op::send);
  const auto bytes = static_cast<std::uint64_t>(send.bytes.at(2));

  EXPECT_EQ(make_costs(model, scope_of(job.plans.train), job.model)->of(send), 1000 + bytes);
  model.machine.ranks_per_node = 1;
  EXPECT_EQ(make_costs(model, scope_of(job.plans.train), job.model)->of(send), 100'000 + 2 * bytes);
}

TEST(AnalyticalCosts, OfAnAllReduceAreThoseOfARing) {
  const ToyJob job(1, 4);
  CostModel model;
  model.kind = CostModel::Kind::analytical;
  model.machine.node = {1, 8};
  const Task& reduce = first_task(job.plans.train, Op::all_reduce);
  const auto bytes = static_cast<double>(reduce.bytes.fixed);

  // 2 (d - 1) steps, each of a d-th of the bytes.
  EXPECT_NEAR(
      static_cast<double>(make_costs(model, scope_of(job.plans.train), job.model)->of(reduce)),
      6 * (1000 + bytes / 4), 1);
}

TEST(MeasuredCosts, AreSharedByTheRegionsThatTheyWereMeasuredOf) {
  const ToyJob job;
  CostModel model;
  model.kind = CostModel::Kind::measured;
  model.measured_file = "costs.toml";
  model.measured = {{Op::forward, 0, 5, 6.0, {}}, {Op::backward, 0, 5, 12.0, {}}};
  const auto costs = make_costs(model, scope_of(job.plans.train), job.model);
  ASSERT_TRUE(costs) << errors_of(costs);

  std::uint64_t forward = 0, backward = 0;
  for (std::uint32_t c = 0; c < job.plans.train.chunks.size(); ++c) {
    const ChunkId chunk{c};
    const auto of = [&](Op op) {
      return costs->of(op, chunk, none<ValueId>(), none<BucketId>(), none<CommId>());
    };
    forward += of(Op::forward);
    backward += of(Op::backward);
    EXPECT_EQ(of(Op::backward_input), of(Op::backward_weight));
  }
  EXPECT_NEAR(static_cast<double>(forward), 6000, 2);
  EXPECT_NEAR(static_cast<double>(backward), 12000, 2);
}

TEST(RegionCosts, AreOperationsUnlessTheModelKnowsTimes) {
  const ModelGraph model = test::toy_model({2});
  CostModel measured;
  measured.kind = CostModel::Kind::measured;
  measured.measured = *parse_measured(
      "[[cost]]\nop = \"forward\"\nregions = \"0..3\"\nus = 4\n"
      "[[cost]]\nop = \"backward\"\nregions = \"0..2\"\nus = 3\n"
      "[[cost]]\nop = \"backward\"\nregions = 3\nus = 6\n",
      "costs.toml");

  const auto operations = region_costs({}, model, 4);
  const auto times = region_costs(measured, model, 4);

  ASSERT_TRUE(operations && times) << errors_of(times);
  for (std::size_t r = 0; r < 4; ++r) {
    EXPECT_EQ((*operations)[r], model.regions[r].flops.at(4));
  }
  EXPECT_EQ(*times, (std::vector<std::int64_t>{2000, 2000, 2000, 7000}));
}

TEST(MeasuredCosts, NameTheComputationThatTheFileLacks) {
  const ToyJob job;
  CostModel model;
  model.kind = CostModel::Kind::measured;
  model.measured_file = "costs.toml";
  model.measured = {{Op::forward, 0, 2, 6.0, {}}};

  EXPECT_EQ(errors_of(make_costs(model, scope_of(job.plans.train), job.model)),
            "costs.toml: error: expected a [[cost]] with op = \"backward_input\" for region 0, got "
            "none [cost.missing]");
}

TEST(Costs, OfAFileOrderWhatNothingElseOrders) {
  const ModelGraph model = test::toy_model({4});
  Config config = test::toy_config(2, 1, 4);
  Proposal free = test::toy_pipeline(config, model);
  std::erase_if(free.directives, [](const Directive& directive) {
    return std::holds_alternative<OrderChainDirective>(directive.what);
  });
  const std::string file = testing::TempDir() + "costs.toml";
  const auto text_with = [&](const std::string& costs) {
    std::ofstream(file) << costs;
    config.cost = {"measured", "", file};
    return print(plan(config, model, {free})->train, model);
  };
  const std::string head = "[[cost]]\nregions = \"0..5\"\nop = ";

  EXPECT_NE(text_with(head + "\"forward\"\nus = 1\n" + head + "\"backward\"\nus = 1000\n"),
            text_with(head + "\"forward\"\nus = 1000\n" + head + "\"backward\"\nus = 1\n"));
}

}  // namespace
}  // namespace piper

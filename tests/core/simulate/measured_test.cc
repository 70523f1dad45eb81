// From a run's recorded times to durations, cost files and comparisons; and what [emulate] says.
#include "core/simulate/measured.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "core/pipeline.h"
#include "core/simulate/analysis.h"
#include "core/simulate/compare_traces.h"
#include "core/simulate/emulated.h"
#include "core/simulate/trace.h"
#include "tests/support/sharded_toy.h"
#include "tests/support/toy_model.h"

namespace piper {
namespace {

struct Planned {
  explicit Planned(std::uint32_t pp, std::uint32_t dp = 1, std::uint32_t microbatches = 4) {
    config = test::toy_config(pp, dp, microbatches);
    auto plans = piper::plan(config, model, {test::toy_pipeline(config, model)});
    EXPECT_TRUE(plans) << to_string(plans.error());
    plan = plans->train;
  }

  // As if the ranks of a place ran alike, and each transfer's ends came `late` nanoseconds apart.
  Spans recorded(const Simulation& run, std::uint64_t late = 0) const {
    Spans spans;
    for (std::uint32_t rank = 0; rank < plan.world; ++rank) {
      const std::uint32_t program = plan.seat(rank).program;
      spans.push_back(run.times[program]);
      for (std::size_t t = 0; t < spans.back().size(); ++t) {
        if (plan.programs[program].tasks[t].op == Op::recv) {
          spans.back()[t].begin -= std::min(late, spans.back()[t].begin);
        }
      }
    }
    return spans;
  }

  ModelGraph model = test::toy_model();
  Config config;
  Plan plan;
};

EmulateConfig five_ms() {
  EmulateConfig emulate;
  emulate.forward_ms = emulate.backward_input_ms = emulate.backward_weight_ms = 5;
  return emulate;
}

std::string trace_of(const Planned& job, const Spans& spans, bool in_units = false) {
  std::ostringstream out;
  write_trace(out, job.plan, job.model, spans, 1e-3, in_units);
  return out.str();
}

TEST(Measured, ARunThatWasObservedIsAnalysedAsTheSimulatedOne) {
  const Planned job(3);
  EmulateConfig emulate = five_ms();
  emulate.link_latency_us = 1000;
  const auto run = simulate(job.plan, emulated_durations(job.plan, emulate));
  const Analysis simulated = analyse(job.plan, job.model, *run);
  const Analysis found = analyse(job.plan, job.model, observed(job.plan, run->times));

  EXPECT_EQ(found.makespan, simulated.makespan);
  for (std::size_t p = 0; p < found.programs.size(); ++p) {
    EXPECT_EQ(found.programs[p].exposed, simulated.programs[p].exposed);
    EXPECT_EQ(found.programs[p].gaps.size(), simulated.programs[p].gaps.size());
  }
  EXPECT_GT(found.programs[0].exposed, 0U);
}

TEST(EmulatedDurations, AreTheUnitCostsInMilliseconds) {
  const Planned job(2);
  const auto unit = simulate(job.plan, unit_durations(job.plan, job.model));

  const auto emulated = simulate(job.plan, emulated_durations(job.plan, five_ms()));

  ASSERT_TRUE(unit && emulated);
  EXPECT_EQ(emulated->makespan * kUnitTicks, unit->makespan * 5'000'000);
}

TEST(EmulatedDurations, ShareARanksTimeAmongItsChunks) {
  const Planned job(1);  // no stages: cut at bounds of buckets, or not at all

  const Durations durations = emulated_durations(job.plan, five_ms());

  std::uint64_t forward = 0, backward = 0;
  for (std::size_t t = 0; t < durations[0].size(); ++t) {
    const Task& task = job.plan.programs[0].tasks[t];
    if (task.microbatch == 1) {
      forward += task.op == Op::forward ? durations[0][t] : 0;
      backward += task.op == Op::backward ? durations[0][t] : 0;
    }
  }
  EXPECT_EQ(forward, 5'000'000U);
  EXPECT_EQ(backward, 10'000'000U) << "both halves";
}

// Chains of a bucket are counted where other tasks have their micro-batch, and there are more.
TEST(EmulatedDurations, GiveEachMicrobatchItsTimeWhereABucketHasMoreChains) {
  test::ShardedShape shape;
  shape.pp = 1;
  const auto plans = test::plan(test::sharded_job(shape));
  ASSERT_TRUE(plans) << to_string(plans.error());
  const Plan& plan = plans->train;

  const Durations durations = emulated_durations(plan, five_ms());

  std::map<std::uint32_t, std::uint64_t> forward;
  std::uint32_t chains = 0;
  for (std::size_t t = 0; t < durations[0].size(); ++t) {
    const Task& task = plan.programs[0].tasks[t];
    if (task.op == Op::forward) {
      forward[task.microbatch] += durations[0][t];
    } else if (task.op == Op::all_gather) {
      chains = std::max(chains, task.microbatch + 1);
      EXPECT_EQ(durations[0][t], 0U);
    }
  }
  EXPECT_GT(chains, plan.microbatches);
  EXPECT_EQ(forward.size(), plan.microbatches);
  for (const auto& [microbatch, nanoseconds] : forward) {
    EXPECT_NEAR(static_cast<double>(nanoseconds), 5e6, 4) << microbatch;  // rounded by the chunk
  }
}

TEST(EmulatedDurations, CountLatencyAndBytesOfLinks) {
  const Planned job(2);
  EmulateConfig emulate;
  emulate.link_latency_us = 3;
  emulate.link_gbps = 2;

  const Durations durations = emulated_durations(job.plan, emulate);

  const Program& program = job.plan.programs[0];
  const auto send = std::find_if(program.tasks.begin(), program.tasks.end(),
                                 [](const Task& task) { return task.op == Op::send; });
  ASSERT_NE(send, program.tasks.end());
  const std::int64_t bytes = send->bytes.at(rows_of(job.plan, program, 0, send->microbatch).count);
  EXPECT_EQ(durations[0][send - program.tasks.begin()], 3000U + 4U * bytes);
}

TEST(WithoutWaits, StartsATransferWhenItsLastEndIsThere) {
  const Planned job(2, 2);
  EmulateConfig emulate = five_ms();
  emulate.link_latency_us = 100;
  const auto run = simulate(job.plan, emulated_durations(job.plan, emulate));
  ASSERT_TRUE(run);

  const Spans spans = without_waits(job.plan, job.recorded(*run, 50'000));

  ASSERT_EQ(spans.size(), job.plan.programs.size());
  for (std::size_t p = 0; p < spans.size(); ++p) {
    for (std::size_t t = 0; t < spans[p].size(); ++t) {
      EXPECT_EQ(spans[p][t].begin, run->times[p][t].begin) << p << ' ' << t;
    }
  }
}

TEST(MeasuredCosts, PredictTheRunThatTheyAreFrom) {
  const Planned job(2);
  const auto run = simulate(job.plan, emulated_durations(job.plan, five_ms()));
  ASSERT_TRUE(run);
  const std::string file = to_toml(measured_costs(job.plan, job.model, durations_of(run->times)));

  CostModel model;
  model.kind = CostModel::Kind::measured;
  const auto read = parse_measured(file, "costs.toml");
  ASSERT_TRUE(read) << to_string(read.error()) << file;
  model.measured = *read;
  const auto costs = make_costs(model, scope_of(job.plan), job.model);

  ASSERT_TRUE(costs) << to_string(costs.error()) << file;
  for (const Program& program : job.plan.programs) {
    for (const Task& task : program.tasks) {
      if (task.op == Op::forward || task.op == Op::backward) {
        EXPECT_EQ(costs->of(task), task.op == Op::forward ? 5'000'000U : 10'000'000U);
      }
    }
  }
}

TEST(CompareTraces, GivesTheErrorOfEachKindAndOfTheStep) {
  const Planned job(2);
  EmulateConfig slow = five_ms();
  slow.forward_ms = 10;
  const auto predicted = simulate(job.plan, emulated_durations(job.plan, five_ms()));
  const auto measured = simulate(job.plan, emulated_durations(job.plan, slow));
  ASSERT_TRUE(predicted && measured);
  const std::string first = trace_of(job, predicted->times);
  const std::string second = trace_of(job, measured->times);

  const auto table = compare_traces({first, "predicted.json"}, {second, "measured.json"});

  ASSERT_TRUE(table) << to_string(table.error());
  EXPECT_NE(table->find("forward                8         5.0000        10.0000      -50.0 %\n"),
            std::string::npos)
      << *table;
  EXPECT_NE(table->find("backward               8        10.0000        10.0000       +0.0 %\n"),
            std::string::npos)
      << *table;
  EXPECT_NE(table->find("step                            75.0000       100.0000      -25.0 %\n"),
            std::string::npos)
      << *table;
}

TEST(CompareTraces, RefusesTracesOfDifferentPlans) {
  const Planned four(2, 1, 4), three(2, 1, 3);
  const Durations none3 = emulated_durations(three.plan, {});
  const Durations none4 = emulated_durations(four.plan, {});
  const std::string first = trace_of(four, simulate(four.plan, none4)->times);
  const std::string second = trace_of(three, simulate(three.plan, none3)->times);

  const auto table = compare_traces({first, "predicted.json"}, {second, "measured.json"});

  ASSERT_FALSE(table);
  const std::string said = to_string(table.error());
  EXPECT_TRUE(
      said.starts_with("measured.json: error: expected two traces of one plan [trace.differ]\n"))
      << said;
  EXPECT_NE(said.find("only predicted.json has '0B3@0', '0F3@0', "), std::string::npos) << said;
  EXPECT_EQ(said.find("only measured.json"), std::string::npos) << said;
}

TEST(CompareTraces, RefusesUnitsBesideMilliseconds) {
  const Planned job(2);
  const Spans spans = simulate(job.plan, emulated_durations(job.plan, five_ms()))->times;
  const std::string units = trace_of(job, spans, /*in_units=*/true), real = trace_of(job, spans);

  const auto table = compare_traces({units, "predicted.json"}, {real, "measured.json"});

  ASSERT_FALSE(table);
  EXPECT_EQ(to_string(table.error()),
            "predicted.json: error: expected two traces in milliseconds, got one in units "
            "[trace.units]\n"
            "note: `piper simulate --costs analytical --trace=FILE` predicts milliseconds, and so "
            "does `--costs measured` with a file of `piper train --costs=FILE`");
  const auto both = compare_traces({units, "one.json"}, {units, "other.json"});
  ASSERT_TRUE(both);
  EXPECT_EQ(both->find(" ms"), std::string::npos) << *both;
}

TEST(CompareTraces, RefusesWhatIsNoTraceWithItsPlace) {
  const Planned job(2);
  const std::string good =
      trace_of(job, simulate(job.plan, emulated_durations(job.plan, {}))->times);
  const auto said = [&](std::string_view text) {
    const auto table = compare_traces({text, "t.json"}, {good, "good.json"});
    return table ? "" : to_string(table.error());
  };

  EXPECT_EQ(said("{\n\"traceEvents\": [,]}"),
            "t.json:2:17: error: expected a trace in JSON, as `piper simulate --trace` writes it: "
            "syntax error while parsing value - unexpected ','; expected '[', '{', or a literal "
            "[trace.file]");
  EXPECT_EQ(
      said("[]"),
      "t.json: error: expected an object with traceEvents, as `piper simulate --trace` writes "
      "it [trace.file]");
  EXPECT_EQ(said("{\"traceEvents\": [{\"ph\": \"X\", \"name\": \"0F0@0\"}]}"),
            "t.json: error: expected tasks with name, cat, ts and dur, as `piper simulate --trace` "
            "writes it [trace.file]");
  EXPECT_EQ(said("{\"traceEvents\": []}"),
            "t.json: error: expected tasks, as `piper simulate --trace` writes it [trace.file]");
}

}  // namespace
}  // namespace piper

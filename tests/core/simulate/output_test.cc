// A simulation as text, JSON, trace and picture.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "core/show/grid.h"
#include "core/simulate/analysis.h"
#include "core/simulate/schedule_grid.h"
#include "core/simulate/trace.h"
#include "tests/support/golden.h"
#include "tests/support/pipeline_plan.h"
#include "tests/support/svg_texts.h"

namespace piper {
namespace {

using nlohmann::json;
using test::expect_golden;

// A pipeline under costs in which messages take a tenth of a forward.
struct Ran {
  test::PipelineCase made;
  Simulation run;
  Analysis analysis;
  TimeUnit unit{static_cast<double>(kUnitTicks), "units"};

  explicit Ran(const test::PipelineShape& shape) : made(test::pipeline(shape)) {
    Durations durations = unit_durations(made.plan, made.model);
    for (std::size_t p = 0; p < durations.size(); ++p) {
      for (std::size_t t = 0; t < durations[p].size(); ++t) {
        if (is_point_to_point(made.plan.programs[p].tasks[t].op)) {
          durations[p][t] = kUnitTicks / 10;
        }
      }
    }
    run = simulate(made.plan, durations).value();
    analysis = analyse(made.plan, made.model, run);
  }

  std::string text() const { return describe(made.plan, made.model, run, analysis, unit); }
  json as_json() const {
    std::ostringstream out;
    write_json(out, made.plan, made.model, run, analysis, unit);
    return json::parse(out.str());
  }
  json trace() const {
    std::ostringstream out;
    write_trace(out, made.plan, made.model, run.times, 1000 / unit.ticks);
    return json::parse(out.str());
  }
  std::size_t tasks() const {
    std::size_t count = 0;
    for (const Program& program : made.plan.programs) {
      count += program.tasks.size();
    }
    return count;
  }
};

TEST(Described, SaysWhoIdlesAndWhy) {
  expect_golden("simulate/text", Ran({.stages = 2, .replicas = 2, .microbatches = 3}).text());
}

TEST(SimulationJson, HasTheFieldsOfTheManual) {
  const Ran ran({.stages = 2, .replicas = 2, .microbatches = 3});

  const json value = ran.as_json();

  EXPECT_EQ(value["format"], "piper-simulation-1");
  EXPECT_EQ(value["unit"], "units");
  EXPECT_NEAR(value["makespan"].get<double>(), 12.4, 1e-5)
      << "1F1B by hand: four messages on the way";
  EXPECT_NEAR(value["bubble"].get<double>(), 1 - 9 / 12.4, 1e-5);
  ASSERT_EQ(value["programs"].size(), 2U);
  for (const json& program : value["programs"]) {
    EXPECT_EQ(program["ranks"].size(), 2U);
    EXPECT_NEAR(program["busy"].get<double>(), 9, 1e-5);
    EXPECT_LE(program["peak_bytes"], program["planned_peak_bytes"]);
    EXPECT_GE(program["exposed"].get<double>(), 0);
    for (const json& gap : program["gaps"]) {
      EXPECT_LT(gap["begin"], gap["end"]);
      EXPECT_EQ(gap.contains("before"), gap.contains("waits_for"));
    }
  }
  EXPECT_EQ(value["programs"][1]["gaps"][0]["before"], "1F0@1");
  EXPECT_EQ(value["programs"][1]["gaps"][0]["waits_for"], "0F0@0");
  EXPECT_NEAR(value["programs"][1]["gaps"][0]["exposed"].get<double>(), 0.1, 1e-5);
  EXPECT_EQ(value["critical_path"].front()["task"], "0F0@0");
  EXPECT_EQ(value["critical_path"].back()["end"], value["makespan"]);
}

TEST(Trace, HasAnEventATaskAndNamesEveryThread) {
  const Ran ran({.stages = 2, .replicas = 2, .microbatches = 3});

  const json trace = ran.trace();

  std::map<std::string, std::size_t> phases;
  double end = 0;
  for (const json& event : trace["traceEvents"]) {
    ++phases[event["ph"].get<std::string>()];
    ASSERT_TRUE(event.contains("name") && event.contains("pid")) << event;
    if (event["ph"] == "X") {
      ASSERT_TRUE(event["ts"].is_number() && event["dur"].is_number() && event["tid"].is_number());
      EXPECT_GE(event["dur"].get<double>(), 0);
      end = std::max(end, event["ts"].get<double>() + event["dur"].get<double>());
    }
  }
  EXPECT_EQ(phases["X"], ran.tasks());
  EXPECT_EQ(phases["M"], 2 + ran.made.plan.programs[0].streams.size() +
                             ran.made.plan.programs[1].streams.size());
  EXPECT_NEAR(end, 12400, 0.01) << "a unit is a millisecond";
}

TEST(Trace, JoinsEverySendToItsReceive) {
  const json trace = Ran({.stages = 2, .microbatches = 3}).trace();

  std::map<std::uint64_t, std::vector<json>> flows;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "s" || event["ph"] == "f") {
      flows[event["id"].get<std::uint64_t>()].push_back(event);
    }
  }
  EXPECT_EQ(flows.size(), 6U) << "three micro-batches, there and back";
  for (const auto& [id, ends] : flows) {
    ASSERT_EQ(ends.size(), 2U) << id;
    EXPECT_NE(ends[0]["ph"], ends[1]["ph"]);
    EXPECT_NE(ends[0]["pid"], ends[1]["pid"]);
    EXPECT_EQ(ends[0]["cat"], ends[1]["cat"]);
    EXPECT_EQ(ends[0]["name"], ends[1]["name"]);
  }
}

Expected<Grid> drawn(const Ran& ran) {
  return schedule_grid(ran.made.plan, ran.made.model, ran.run, ran.analysis, ran.unit, "toy",
                       {"a fact"});
}

TEST(ScheduleGrid, HasARowAPlaceAndABoxAComputation) {
  const Ran ran({.stages = 2, .replicas = 2, .microbatches = 3});

  const auto grid = drawn(ran);

  ASSERT_TRUE(grid);
  ASSERT_EQ(grid->rows.size(), 2U);
  EXPECT_EQ(grid->rows[1].group, "ranks 2, 3");
  EXPECT_EQ(grid->rows[1].label, "idle 27.4 %");
  EXPECT_EQ(grid->boxes.size(), 12U) << "two passes of three micro-batches on each";
}

TEST(ScheduleGrid, PrintsAsSvg) {
  expect_golden(
      "simulate/grid",
      svg(drawn(Ran({.stages = 4, .microbatches = 4, .split_backward = true, .folded = true}))
              .value()));
}

TEST(ScheduleGrid, HasTextsThatLieApart) {
  for (const std::uint32_t stages : {1U, 2U, 4U}) {
    test::expect_texts_apart(
        svg(drawn(Ran({.stages = stages, .microbatches = 8, .split_backward = true})).value()));
  }
}

TEST(ScheduleGrid, RefusesWhatNobodyCouldRead) {
  Ran ran({.stages = 2, .microbatches = 40});
  while (ran.made.plan.programs.size() * ran.made.plan.programs[1].streams[0].tasks.count <=
         20000) {
    ran.made.plan.programs.push_back(ran.made.plan.programs[1]);
  }

  const auto grid = drawn(ran);

  ASSERT_FALSE(grid);
  EXPECT_EQ(grid.error().front().code, "show.too_large");
}

}  // namespace
}  // namespace piper

// The tables of other systems, one by one, as tests/data/schedules/coverage.csv lists them.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "core/pipeline.h"
#include "core/show/csv.h"
#include "core/simulate/simulate.h"
#include "tests/support/plugin_job.h"
#include "tests/support/toy_model.h"

namespace piper {
namespace {

const std::string kFolder = std::string(PIPER_SOURCE_DIR) + "/tests/data/schedules/";

// A line of coverage.csv.
struct Covered {
  std::string file, group_size, plugin, schedule, options, match;
  std::uint32_t ranks = 0, stages_per_rank = 0, microbatches = 0;

  std::string key() const {
    return file + " " + std::to_string(ranks) + " " + std::to_string(stages_per_rank) + " " +
           std::to_string(microbatches) + " " + group_size;
  }
};

std::vector<std::vector<std::string>> read_csv(const std::string& name) {
  std::ifstream file(kFolder + name);
  std::vector<std::vector<std::string>> lines;
  std::string line;
  std::getline(file, line);  // the head
  while (std::getline(file, line)) {
    lines.emplace_back();
    std::istringstream text(line);
    for (std::string cell; std::getline(text, cell, ',');) {
      lines.back().push_back(cell);
    }
  }
  return lines;
}

std::vector<Covered> covered() {
  std::vector<Covered> lines;
  for (const std::vector<std::string>& cells : read_csv("coverage.csv")) {
    const auto number = [&](std::size_t i) {
      return static_cast<std::uint32_t>(std::stoul(cells.at(i)));
    };
    lines.push_back({cells.at(0), cells.at(4), cells.at(5), cells.at(6), cells.at(7), cells.at(8),
                     number(1), number(2), number(3)});
  }
  return lines;
}

std::map<std::string, nlohmann::json> tables() {
  std::map<std::string, nlohmann::json> tables;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() != ".json") {
      continue;
    }
    std::ifstream stream(entry.path());
    const nlohmann::json data = nlohmann::json::parse(stream);
    for (const nlohmann::json& table : data["tables"]) {
      Covered line;
      line.file = entry.path().filename();
      line.ranks = table["ranks"];
      line.stages_per_rank = table["stages_per_rank"];
      line.microbatches = table["microbatches"];
      const auto group = table.find("microbatch_group_size_per_vp_stage");
      line.group_size = group == table.end() ? "" : group->dump();
      tables[line.key()] = table;
    }
  }
  return tables;
}

const ModelGraph& model() {
  static const ModelGraph model = test::toy_model({.layers = 16});
  return model;
}

test::PluginJob job_of(const Covered& line) {
  return {line.plugin, line.ranks, 1, line.microbatches,
          test::options_of("schedule=" + line.schedule + " " + line.options)};
}

test::TableRows planned(const Covered& line) {
  const auto proposals = test::propose(job_of(line), model());
  EXPECT_TRUE(proposals) << line.key() << ": " << to_string(proposals.error());
  return proposals ? test::rows_of(proposals->at(0)) : test::TableRows{};
}

std::string joined(const test::TableRows& rows) {
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      text += (i > 0 ? "," : "") + row[i];
    }
    text += "\n";
  }
  return text;
}

TEST(ScheduleTables, AreAllListed) {
  std::set<std::string> listed, present;
  for (const Covered& line : covered()) {
    EXPECT_TRUE(listed.insert(line.key()).second) << line.key() << " is there twice";
  }
  for (const auto& [key, table] : tables()) {
    present.insert(key);
  }

  EXPECT_EQ(listed, present);
}

TEST(ScheduleTables, AreWhatThePluginsPlan) {
  const std::map<std::string, nlohmann::json> all = tables();
  std::map<std::string, int> matches;
  for (const Covered& line : covered()) {
    ++matches[line.match];
    if (line.match == "not_covered") {
      continue;
    }
    const nlohmann::json& table = all.at(line.key());
    const auto theirs = table["per_rank"].get<test::TableRows>();

    const test::TableRows ours = planned(line);

    if (line.match == "exact") {
      EXPECT_EQ(ours, theirs) << line.key();
      continue;
    }
    const test::UnitRun mine = test::run_at_unit_cost(ours, table["stages"], line.microbatches);
    const test::UnitRun reference =
        test::run_at_unit_cost(theirs, table["stages"], line.microbatches);
    ASSERT_EQ(mine.problem, "") << line.key();
    EXPECT_EQ(mine.most_held(), reference.most_held()) << line.key();
    if (line.match == "no_worse") {
      EXPECT_LT(mine.makespan, reference.makespan) << line.key();
    } else {
      ASSERT_EQ(line.match, "makespan_and_memory");
      EXPECT_EQ(mine.makespan, reference.makespan) << line.key();
    }
  }
  EXPECT_GT(matches["exact"], 150);
}

// What the plan's streams run, printed: nothing between the plugin and the plan changes the order.
TEST(ScheduleTables, AreWhatPlansRun) {
  const std::map<std::string, nlohmann::json> all = tables();
  for (const Covered& line : covered()) {
    if (line.match != "exact") {
      continue;
    }
    const auto proposals = test::propose(job_of(line), model());
    ASSERT_TRUE(proposals) << line.key();
    OrderNotation notation;

    const auto plans = plan(test::config_of(job_of(line)), model(), *proposals,
                            [&](const Phase& phase) { notation.see(phase); });

    ASSERT_TRUE(plans) << line.key() << ": " << to_string(plans.error());
    const auto text = csv(plans->train, model(), notation);
    ASSERT_TRUE(text) << to_string(text.error());
    EXPECT_EQ(*text, joined(all.at(line.key())["per_rank"].get<test::TableRows>())) << line.key();
  }
}

// Columns `makespan_seq` and `makespan` of bubbles.csv, by the key of a table.
struct Makespan {
  std::uint64_t apart = 0, atomic = 0;
};
std::map<std::string, Makespan> makespans() {
  std::map<std::string, Makespan> all;
  for (const std::vector<std::string>& cells : read_csv("bubbles.csv")) {
    const auto number = [&](std::size_t i) {
      return static_cast<std::uint32_t>(std::stoul(cells.at(i)));
    };
    Covered line;
    line.file = cells.at(0) + ".json";
    line.ranks = number(1);
    line.microbatches = number(2);
    line.stages_per_rank = number(3);
    line.group_size = cells.at(6);
    all[line.key()] = {number(18), number(7)};
  }
  return all;
}

TEST(ScheduleTables, TakeAsLongSimulatedAsRecorded) {
  const std::map<std::string, Makespan> all = makespans();
  std::uint32_t compared = 0;
  for (const Covered& line : covered()) {
    if (line.match != "exact") {
      continue;
    }
    const auto proposals = test::propose(job_of(line), model());
    ASSERT_TRUE(proposals) << line.key();
    const auto plans = plan(test::config_of(job_of(line)), model(), *proposals);
    ASSERT_TRUE(plans) << line.key() << ": " << to_string(plans.error());
    const Durations durations = unit_durations(plans->train, model());

    const auto apart = simulate(plans->train, durations);
    const auto atomic = simulate(plans->train, durations, {.atomic_pairs = true});

    ASSERT_TRUE(apart && atomic) << line.key();
    EXPECT_EQ(apart->makespan, all.at(line.key()).apart * kUnitTicks) << line.key();
    EXPECT_EQ(atomic->makespan, all.at(line.key()).atomic * kUnitTicks) << line.key();
    ++compared;
  }
  EXPECT_GT(compared, 150U);
}

}  // namespace
}  // namespace piper

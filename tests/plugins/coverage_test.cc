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

std::vector<Covered> covered() {
  std::ifstream file(kFolder + "coverage.csv");
  std::vector<Covered> lines;
  std::string line;
  std::getline(file, line);  // the head
  while (std::getline(file, line)) {
    std::vector<std::string> cells;
    std::istringstream text(line);
    for (std::string cell; std::getline(text, cell, ',');) {
      cells.push_back(cell);
    }
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

}  // namespace
}  // namespace piper

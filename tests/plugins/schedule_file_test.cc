// Schedules from files: recorded ones come through unchanged, malformed ones are refused with row,
// column and reason, and messages that a file also has are compared with what follows.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/pipeline.h"
#include "tests/support/plugin_job.h"
#include "tests/support/toy_model.h"

namespace piper {
namespace {

const std::string kFolder = std::string(PIPER_SOURCE_DIR) + "/tests/data/schedules/";

struct Size {
  std::uint32_t ranks = 2, microbatches = 2;
};

test::PluginJob job_of(const std::string& path, const Size& size, const std::string& options = "") {
  test::PluginJob job{"schedule_file", size.ranks, 1, size.microbatches, test::options_of(options)};
  job.options.emplace_back("path", test::text_option(path));
  return job;
}

const ModelGraph& model() {
  static const ModelGraph model = test::toy_model({.layers = 16});
  return model;
}

// A file with this text; its name is the test's.
std::string file_of(const std::string& text) {
  const std::string path = testing::TempDir() + "/" +
                           testing::UnitTest::GetInstance()->current_test_info()->name() + ".csv";
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

// What the plugin says of a file with this text, "" for nothing: errors, else warnings. Without the
// place of the option and the file's folder.
std::string said(const std::string& text, const Size& size = {}, const std::string& options = "") {
  const std::string path = file_of(text);
  Diagnostics warnings;
  const auto proposals = test::propose(job_of(path, size, options), model(), &warnings);
  std::string all = to_string(proposals ? warnings : proposals.error());
  for (const std::string& part :
       {path + ":", std::string("job.toml:9:12: "), std::string("schedule_file: "),
        std::string(" (the plan is made from computations alone)"),
        std::string("[schedule_file.differs]"), std::string(" [schedule_file.malformed]")}) {
    for (std::size_t at = all.find(part); at != std::string::npos; at = all.find(part)) {
      all.erase(at, part.size());
    }
  }
  return all;
}

test::TableRows rows(const std::string& text, const Size& size = {},
                     const std::string& options = "") {
  const auto proposals = test::propose(job_of(file_of(text), size, options), model());
  EXPECT_TRUE(proposals) << to_string(proposals.error());
  return proposals ? test::rows_of(proposals->at(0)) : test::TableRows{};
}

const test::TableRows kRows{{"0F0", "0F1", "0B0", "0B1"}, {"1F0", "1B0", "1F1", "1B1"}};

TEST(ScheduleFile, ReadsEveryRecordedTable) {
  int tables = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() != ".json") {
      continue;
    }
    std::ifstream stream(entry.path());
    const nlohmann::json data = nlohmann::json::parse(stream);
    for (std::size_t i = 0; i < data["tables"].size(); ++i, ++tables) {
      const nlohmann::json& table = data["tables"][i];
      const auto job = job_of(entry.path(), {table["ranks"], table["microbatches"]},
                              "table=" + std::to_string(i + 1));
      Diagnostics warnings;

      const auto proposals = test::propose(job, model(), &warnings);

      ASSERT_TRUE(proposals) << entry.path() << " " << i << to_string(proposals.error());
      EXPECT_EQ(nlohmann::json(test::rows_of(proposals->at(0))), table["per_rank"]);
      EXPECT_EQ(to_string(warnings), "");
    }
  }
  EXPECT_EQ(tables, 241);
}

// Without messages, gathers and reductions.
bool is_computation(const std::string& cell) {
  return cell.find("SEND") == std::string::npos && cell.find("RECV") == std::string::npos &&
         cell.find("SHARD") == std::string::npos && cell.find("REDUCE") == std::string::npos;
}

TEST(ScheduleFile, AgreesWithTheMessagesThatPyTorchAndDeepSeekDerive) {
  int tables = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder + "lowered")) {
    if (entry.path().extension() != ".json") {
      continue;
    }
    std::ifstream stream(entry.path());
    const nlohmann::json data = nlohmann::json::parse(stream);
    for (std::size_t i = 0; i < data["tables"].size(); ++i, ++tables) {
      const nlohmann::json& table = data["tables"][i];
      auto computations = table["per_rank"].get<test::TableRows>();
      for (std::vector<std::string>& row : computations) {
        std::erase_if(row, [](const std::string& cell) { return !is_computation(cell); });
      }
      const auto job = job_of(entry.path(), {table["ranks"], table["microbatches"]},
                              "table=" + std::to_string(i + 1));
      Diagnostics warnings;

      const auto proposals = test::propose(job, model(), &warnings);

      ASSERT_TRUE(proposals) << entry.path() << " " << i << to_string(proposals.error());
      EXPECT_EQ(test::rows_of(proposals->at(0)), computations) << entry.path() << " " << i;
      EXPECT_EQ(to_string(warnings), "") << entry.path() << " " << i;
    }
  }
  EXPECT_GT(tables, 35);
}

TEST(ScheduleFile, ReadsPyTorchsCsv) {
  for (const auto& [file, size] :
       {std::pair<const char*, Size>{"dualpipev_4rank_10mb.csv", {4, 10}},
        {"zb1p_2rank_2stagep_compute.csv", {2, 8}},
        {"zb1p_2rank_2stagep_comms.csv", {2, 8}}}) {
    Diagnostics warnings;
    const auto job = job_of(kFolder + "lowered/" + file, size);
    const auto proposals = test::propose(job, model(), &warnings);

    ASSERT_TRUE(proposals) << file << "\n" << to_string(proposals.error());
    EXPECT_EQ(to_string(warnings), "") << file;
    const auto plans = plan(test::config_of(job), model(), *proposals);
    EXPECT_TRUE(plans) << file << "\n" << to_string(plans.error());
  }
}

TEST(ScheduleFile, PlansTheSameAsThePluginThatWroteIt) {
  const auto written =
      test::propose({"dualpipe", 4, 1, 10, test::options_of("schedule=dualpipev")}, model());
  const auto read =
      test::propose(job_of(kFolder + "lowered/dualpipev_4rank_10mb.csv", {4, 10}), model());

  ASSERT_TRUE(written && read);
  EXPECT_EQ(test::rows_of(written->at(0)), test::rows_of(read->at(0)));
}

TEST(ScheduleFile, TakesEveryWayToWriteIt) {
  EXPECT_EQ(rows("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1"), kRows);
  EXPECT_EQ(rows("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n\n\n"), kRows);
  EXPECT_EQ(rows("0F0,0F1,,,0B0,,0B1,,,\r\n,1F0,1B0,1F1,1B1\r\n"), kRows);
  EXPECT_EQ(rows("\xef\xbb\xbf 0F0 , 0F1,\t0B0,0B1\n\"1F0\",1B0,\" 1F1\",1B1 \n"), kRows);
  EXPECT_EQ(rows(R"({"ranks": 2, "microbatches": 2, "mapping": "loop", "per_rank":
                     [["0F0", "0F1", "", "0B0", "0B1"], ["1F0", "1B0", "1F1", "1B1"]]})"),
            kRows);
}

TEST(ScheduleFile, TakesASplitBackward) {
  EXPECT_EQ(rows("0F0,0F1,0I0,0I1,0W1,0W0\n1F0,1I0,1W0,1F1,1B1"),
            (test::TableRows{{"0F0", "0F1", "0I0", "0I1", "0W1", "0W0"},
                             {"1F0", "1I0", "1W0", "1F1", "1B1"}}));
}

TEST(ScheduleFile, TakesAnyPlacement) {
  EXPECT_EQ(rows("0F0,2F0,2B0,0B0\n1F0,1B0", {2, 1}),
            (test::TableRows{{"0F0", "2F0", "2B0", "0B0"}, {"1F0", "1B0"}}));
}

struct Refused {
  const char* text;
  const char* why;
  const char* options = "";
};

// What is written in other ways, and legal I and W, are the tests above.
TEST(ScheduleFile, RefusesWhatCannotRunWithRowAndColumn) {
  const Refused cases[] = {
      {"0F0,0F1,0B0,0B1\n1F0,1B0", "error: 2:5: stage 1 micro-batch 1 is left out of this row"},
      {"0F0,0F1,0B0\n1F0,1B0,1F1,1B1", "error: 1:5: 0F1: its backward is left out"},
      {"0F0,0F1,0F0,0B0,0B1\n1F0,1B0,1F1,1B1", "error: 1:9: 0F0: is there twice, first at 1:1"},
      {"0F0,0F1,0B0,0B1\n1B0,1F0,1F1,1B1",
       "error: 2:1: 1B0: comes before the forward of its micro-batch, or without one"},
      {"0F0,0F1,0W0,0I0,0B1\n1F0,1B0,1F1,1B1",
       "error: 1:9: 0W0: comes before the I of its micro-batch, or without one"},
      {"0F0,0F1,0I0,0B1\n1F0,1B0,1F1,1B1", "error: 1:9: 0I0: its W is left out"},
      {"0F0,0F1,0I0,0W0,0B0,0B1\n1F0,1B0,1F1,1B1",
       "error: 1:17: 0B0: expected B, or I and W, of a micro-batch; 0I0 is there at 1:9"},
      {"0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1,0B1",
       "error: 2:17: 0B1: stage 0 is on rank 1 here, and on another with 0F0 at 1:1; expected one "
       "rank a stage"},
      {"0F0,0F1,0B0,0B1\n", "error: 1:16: expected 2 rows, one a rank of pp = 2, got 1"},
      {"", "error: 1:1: expected 2 rows, one a rank of pp = 2, got 0"},
      {"0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n2F0",
       "error: 3:1: expected 2 rows, one a rank of pp = 2, got 3"},
      {"0F0,0F1,0B0,0B1\n\n1F0", "error: 3:1: expected 2 rows, one a rank of pp = 2, got 3"},
      {"0F0,0F1,0B0,0B1\n,,,0SEND_F0", "error: 2:1: rank 1 computes nothing"},
      {"0F0,0F1,0B0,0B1,0F2\n1F0,1B0,1F1,1B1", "error: 1:17: 0F2: expected a micro-batch below 2"},
      {"0F0,0F1,0B0,0B1\n2F0,2B0,2F1,2B1",
       "error: 2:16: expected stages 0 to 2, but none computes stage 1"},
      {"0F0,0F1,0B0,0B1\n900000F0", "error: 2:1: 900000F0: expected stages 0, 1, ... without gaps"},
      {"0F0,0F1,0B0,0B1\n1F0,  X,1F1",
       "error: 2:7: expected an action such as 0F3, 0B3, 0I3, 0W3, 1SEND_F2, 2UNSHARD or "
       "(0F3;3B1)OVERLAP_F_B, got 'X'"},
      {"0F0,0F99999999999\n1F0",
       "error: 1:5: expected an action such as 0F3, 0B3, 0I3, 0W3, 1SEND_F2, 2UNSHARD or "
       "(0F3;3B1)OVERLAP_F_B, got '0F99999999999'"},
      {"0F0,(0F1;0F0)OVERLAP_F_B\n1F0",
       "error: 1:5: expected a forward and a whole backward in an overlapped pair, got "
       "'(0F1;0F0)'"},
      {"0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0",
       "error: 1:5: 0B0: rank 0 would wait here for ever, for the backward of stage 1 micro-batch "
       "0: the rows wait for each other"},
      {"0F0,0F1,3F0,3F1,3B0,3B1,0B0,0B1\n1F0,1F1,2F0,2F1,2B0,2B1,1B0,1B1",
       "error: 2:9: 2F0: expected stage 2 on rank 0 with this mapping, got rank 1", "mapping=loop"},
      {"0F0,0F1,2F0,2F1,2B0,2B1,0B0,0B1\n1F0,1F1,3F0,3F1,3B0,3B1,1B0,1B1",
       "error: 1:9: 2F0: expected stage 2 on rank 1 with this mapping, got rank 0", "mapping=v"},
      {"0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1", "error: 1:1: expected 4 stages with this mapping, got 2",
       "mapping=v"},
      {"0F0,0F1,0B0,0B1\n1F0,(1F1;1B1)OVERLAP_F_B,1B0",
       "error: 2:10: 1B1: is in one pair with 1F1, which it needs"},
      {"0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1",
       "error: 1:5: 0F1: expected micro-batches below 1 of a stage on one rank and the others on "
       "the opposite one with this mapping; 0F0 is at 1:1",
       "mapping=bidirectional"},
      {R"({"ranks": 2, "per_rank": []})", R"(error: 1:1: expected "microbatches", a number)"},
      {"{\"ranks\": 2,\n \"microbatches\": 2, \"per_rank\": [[\"0F0\", 3]]}",
       "error: 2:42: expected an action in quotes"},
      {R"({"tables": [{"ranks": 4, "microbatches": 2}]})",
       "error: 1:1: expected one table of 2 ranks and 2 micro-batches, got none"},
      {"{\"tables\": [", "error: 1:13: expected a value, got the end of the file"},
      {R"({"ranks": 2, "microbatches": 2, "mapping": "w", "per_rank": []})",
       R"(error: 1:44: expected "loop", "v" or "bidirectional")"},
  };
  for (const auto& [text, why, options] : cases) {
    EXPECT_EQ(said(text, {}, options), why) << text;
  }
}

TEST(ScheduleFile, AsksWhichOfSeveralTables) {
  const std::string file = kFolder + "megatron_interleaved_1f1b.json";

  const std::string text = test::refusal(job_of(file, {2, 16}), model());

  EXPECT_NE(text.find("got tables 11 (2 ranks and 16 micro-batches, stages 4, stages_per_rank 2, "
                      "microbatch_group_size_per_vp_stage 2); 12 ("),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("say which with option 'table' [schedule_file.malformed]"), std::string::npos)
      << text;
}

TEST(ScheduleFile, RefusesAFileThatIsNotThere) {
  EXPECT_EQ(test::refusal(job_of("nowhere.csv", {}), model()),
            "job.toml:9:12: error: schedule_file: expected a file that can be read, got "
            "'nowhere.csv' [schedule_file.path]");
}

// The messages of this schedule, in full, and then with a fault.
TEST(ScheduleFile, ReportsMessagesThatDoNotFollow) {
  const char* first = "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n";
  const char* second = "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1";
  const std::string good = std::string(first) + second;
  const auto with = [&](const std::string& old, const std::string& text) {
    std::string changed = good;
    changed.replace(changed.find(old), old.size(), text);
    return said(changed);
  };

  EXPECT_EQ(said(good), "");
  EXPECT_EQ(with("0SEND_F0,", ""), "warning: 1:1: 0SEND_F0: is left out of the row ");
  EXPECT_EQ(with("0F0,0SEND_F0", "0SEND_F0,0F0"),
            "warning: 1:1: 0SEND_F0: comes before what it sends is computed ");
  EXPECT_EQ(with("1RECV_F1,1F1", "1F1,1RECV_F1"),
            "warning: 2:31: 1RECV_F1: comes after the computation that needs it ");
  EXPECT_EQ(with("0B0", "0B0,0SEND_B0"),
            "warning: 1:40: 0SEND_B0: nothing of it goes between these ranks ");
  EXPECT_EQ(with("0F1", "0F1,0SEND_F0"), "warning: 1:18: 0SEND_F0: is there twice ");
}

TEST(ScheduleFile, ReportsGathersAndReductionsThatDoNotFollow) {
  const auto row = [&](const std::string& text) { return said(text, {1, 1}); };

  EXPECT_EQ(row("0UNSHARD,0F0,0B0,0REDUCE_GRAD,0RESHARD"), "");
  EXPECT_EQ(row("0UNSHARD,0F0,0RESHARD,0B0"),
            "warning: 1:23: 0B0: computes a stage that is not gathered ");
  EXPECT_EQ(row("0UNSHARD,0UNSHARD,0F0,0B0,0RESHARD,0RESHARD"),
            "warning: 1:10: 0UNSHARD: the stage is gathered already \n"
            "warning: 1:36: 0RESHARD: the stage is not gathered ");
  EXPECT_EQ(row("0F0,0REDUCE_GRAD,0B0"),
            "warning: 1:18: 0B0: comes after the REDUCE_GRAD of its stage ");
  EXPECT_EQ(row("0F0,0B0,0REDUCE_GRAD,0REDUCE_GRAD"),
            "warning: 1:22: 0REDUCE_GRAD: reduces the stage's gradients a second time ");
}

}  // namespace
}  // namespace piper

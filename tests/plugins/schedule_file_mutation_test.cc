// Thousands of damaged schedule files: each is refused with a place inside of it, or is another
// schedule that can run.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

#include "plugins/schedule_file/check.h"
#include "plugins/schedule_file/json.h"
#include "tests/support/text_mutation.h"
#include "tests/support/unit_run.h"

namespace piper {
namespace {

using schedule_file::Malformed;
using schedule_file::Mapping;

std::string read(const std::string& file) {
  std::ifstream stream(std::string(PIPER_SOURCE_DIR) + "/tests/data/schedules/" + file,
                       std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

struct Tried {
  int refused = 0, accepted = 0, different = 0;
};

// Notation of the computations of a table.
test::TableRows rows_of(const schedule_file::Table& table) {
  test::TableRows rows;
  for (const auto& cells : table.rows) {
    rows.emplace_back();
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (!is_compute(cells[i].kind)) {
        continue;
      }
      const bool pair = cells[i].overlap != 0;
      rows.back().push_back(pair ? "(" + to_string(cells[i]) + ";" + to_string(cells[i + 1]) +
                                       ")OVERLAP_F_B"
                                 : to_string(cells[i]));
      i += pair ? 1 : 0;
    }
  }
  return rows;
}

template <typename Read>
Tried damage(const std::string& text, const schedule_file::Expected& expected, Read&& read_table,
             std::uint32_t seeds) {
  Tried tried;
  const auto lines =
      static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) + 20;  // and a few more
  for (std::uint32_t seed = 0; seed < seeds; ++seed) {
    const std::string damaged = test::TextMutation(seed)(text);
    try {
      const schedule_file::Table table = read_table(damaged);
      const auto rank_of = schedule_file::check(table, expected);
      ++tried.accepted;
      tried.different +=
          schedule_file::differences(table, rank_of, expected.mapping, expected.microbatches)
                  .empty()
              ? 0
              : 1;
      const auto ran = test::run_at_unit_cost(
          rows_of(table), static_cast<std::uint32_t>(rank_of.size()), expected.microbatches);
      EXPECT_EQ(ran.problem, "") << damaged;
    } catch (const Malformed& malformed) {
      ++tried.refused;
      EXPECT_GE(malformed.where.line, 1U);
      EXPECT_LE(malformed.where.line, lines);
      EXPECT_GE(malformed.where.column, 1U);
      EXPECT_STRNE(malformed.what(), "");
    }
  }
  return tried;
}

TEST(DamagedSchedule, IsRefusedOrRuns) {
  const Tried tried = damage(read("lowered/zb1p_2rank_2stagep_comms.csv"),
                             {2, 8, "pp = 2", Mapping::loop}, schedule_file::read_csv, 6000);

  EXPECT_GT(tried.refused, 2000);
  EXPECT_GT(tried.accepted, 100);
  EXPECT_GT(tried.different, 50);  // lost or exchanged messages
}

TEST(DamagedSchedule, WithPairsIsRefusedOrRuns) {
  const Tried tried = damage(read("lowered/dualpipev_4rank_10mb.csv"),
                             {4, 10, "pp = 4", Mapping::any}, schedule_file::read_csv, 6000);

  EXPECT_GT(tried.refused, 4000);
  EXPECT_GT(tried.accepted, 20);
}

TEST(DamagedSchedule, InJsonIsRefusedOrRuns) {
  const Tried tried = damage(
      read("deepseek_dualpipe.json"), {2, 8, "pp = 2", Mapping::bidirectional},
      [](const std::string& text) {
        return schedule_file::read_json(text, {2, 8});
      },
      6000);

  EXPECT_GT(tried.refused, 500);
  EXPECT_GT(tried.accepted, 500);  // the damage was to another table
}

}  // namespace
}  // namespace piper

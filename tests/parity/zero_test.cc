// Every stage of ZeRO under every pipeline schedule computes one device's loss, gradients, norm and
// update; what a schedule does not take is refused.
//
// The cells are stages 0 .. 3 x schedules x pp in {1, 2, 4} x dp in {1, 2, 4} x micro-batches in
// {R, 2R, 2R + 1}, each with clipping or without, a bucket size, policies and a kind of parameters,
// in float64 with momentum SGD and two steps. Rows do not divide evenly, and no two micro-batches
// count equally many tokens. CI runs as many cells as are needed for every two values of different
// factors to meet; PIPER_PARITY_LARGE=1 runs every cell, with the other factors in turn.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <string>
#include <vector>

#include "tests/parity/harness.h"

namespace piper {
namespace {

using testing::Case;
using testing::Schedule;

constexpr Schedule kSchedules[] = {
    {"interleaved1f1b", "1f1b", 1}, {"interleaved1f1b", "interleaved", 2},
    {"zerobubble", "zb1p", 1},      {"zerobubble", "zbv", 2},
    {"dualpipe", "dualpipev", 2},   {"dualpipe", "dualpipe", 2},
};

constexpr std::uint32_t kRanks[] = {1, 2, 4};

// A layer has about 6 KiB of parameters: a bucket a region, some in a stage, one a stage.
constexpr const char* kBuckets[] = {"bucket_bytes = 1", "bucket_bytes = 16000", "bucket_bytes = 0"};

// Chains of one micro-batch, nothing gathered ahead; whole steps, far ahead.
constexpr const char* kPolicies[] = {"prefetch = 1", "prefetch = 0",
                                     "keep_gathered = \"step\"\nreduce = \"step\"\nprefetch = 3"};

enum class Kind : std::uint8_t { groups, tied, frozen };

// A number for each factor, in the order of kSizes.
enum Factor : std::uint8_t {
  schedule,
  pp,
  dp,
  microbatches,
  stage,
  clipping,
  buckets,
  policies,
  kind
};
constexpr std::array<std::uint32_t, 9> kSizes = {6, 3, 3, 3, 4, 2, 3, 3, 3};
using Cell = std::array<std::uint32_t, kSizes.size()>;

std::uint32_t microbatches_of(const Cell& cell) {
  const std::uint32_t ranks = kRanks[cell[pp]];
  return std::array{ranks, 2 * ranks, 2 * ranks + 1}[cell[microbatches]];
}

// What the references of a schedule take (docs/schedules.md), apart from the plugin.
bool is_legal(const Cell& cell) {
  const std::uint32_t ranks = kRanks[cell[pp]], m = microbatches_of(cell);
  const std::string name = kSchedules[cell[schedule]].name;
  return name == "dualpipev"  ? m >= 2 * ranks
         : name == "dualpipe" ? ranks % 2 == 0 && m % 2 == 0 && m >= 2 * ranks
                              : true;
}

Case case_of(const Cell& cell) {
  Case c = testing::case_of(kSchedules[cell[schedule]]);
  c.pp = kRanks[cell[pp]], c.dp = kRanks[cell[dp]], c.microbatches = microbatches_of(cell);
  c.pipeline_of_one = true;
  c.layers = 9;  // not divided evenly, and enough for two stages on each of four ranks
  c.max_norm = cell[clipping] == 1 ? 0.1 : 0;
  c.zero = "stage = " + std::to_string(cell[stage]) + '\n' + kBuckets[cell[buckets]] + '\n' +
           kPolicies[cell[policies]];
  c.tied = static_cast<Kind>(cell[kind]) == Kind::tied;
  if (static_cast<Kind>(cell[kind]) == Kind::frozen) {
    c.freeze = {"model.embed_tokens.weight", "model.layers.0.*", "model.layers.3.*",
                "model.layers.5.mlp.*"};
  } else {
    c.sections = {"[[optimizer.group]]\nparameters = \"*norm.weight\"\nlr = 0.02\nweight_decay = 0",
                  "[[optimizer.group]]\nparameters = \"*embed_tokens*\"\nweight_decay = 0"};
  }
  return c;
}

void expect_parity(const Cell& cell) {
  const Case c = case_of(cell);
  const auto job = make_job(c);
  ASSERT_TRUE(job.has_value()) << to_string(c) << '\n' << to_string(job.error());
  VerifyOptions options;
  options.steps = 2;
  const auto report = verify_parity(*job, options, testing::uneven_batches(*job));
  ASSERT_TRUE(report.has_value()) << to_string(c) << '\n' << to_string(report.error());
  EXPECT_TRUE(report->passed) << to_string(c) << '\n' << report->text;
}

void expect_refused(const Cell& cell) {
  const Case c = case_of(cell);
  const auto job = make_job(c);
  ASSERT_FALSE(job.has_value()) << to_string(c);
  EXPECT_TRUE(job.error().front().code == "dualpipe.microbatches" ||
              job.error().front().code == "dualpipe.ranks")
      << to_string(job.error());
}

// All cells, in a fixed order.
std::vector<Cell> all_cells() {
  std::vector<Cell> cells{Cell{}};
  for (std::size_t f = 0; f < kSizes.size(); ++f) {
    std::vector<Cell> more;
    for (const Cell& cell : cells) {
      for (std::uint32_t value = 0; value < kSizes[f]; ++value) {
        more.push_back(cell);
        more.back()[f] = value;
      }
    }
    cells = std::move(more);
  }
  return cells;
}

// Two factors and their values, as one number.
std::vector<std::size_t> pairs_of(const Cell& cell) {
  std::vector<std::size_t> pairs;
  for (std::size_t a = 0; a < cell.size(); ++a) {
    for (std::size_t b = a + 1; b < cell.size(); ++b) {
      pairs.push_back((a * cell.size() + b) * 36 + cell[a] * 6 + cell[b]);
    }
  }
  return pairs;
}

// Legal cells in which all pairs are that any legal cell has: the next is always one that has most
// of those that are left.
std::vector<Cell> covering_cells() {
  std::vector<Cell> legal = all_cells();
  std::erase_if(legal, [](const Cell& cell) { return !is_legal(cell); });
  std::vector<bool> left(kSizes.size() * kSizes.size() * 36, false);
  for (const Cell& cell : legal) {
    for (const std::size_t pair : pairs_of(cell)) {
      left[pair] = true;
    }
  }
  const auto fresh = [&](const Cell& cell) {
    const std::vector<std::size_t> pairs = pairs_of(cell);
    return std::count_if(pairs.begin(), pairs.end(), [&](std::size_t pair) { return left[pair]; });
  };
  std::vector<Cell> chosen;
  for (;;) {
    std::vector<std::ptrdiff_t> gains;
    std::transform(legal.begin(), legal.end(), std::back_inserter(gains), fresh);
    const auto best = std::max_element(gains.begin(), gains.end());
    if (*best == 0) {
      return chosen;
    }
    chosen.push_back(legal[static_cast<std::size_t>(best - gains.begin())]);
    for (const std::size_t pair : pairs_of(chosen.back())) {
      left[pair] = false;
    }
  }
}

// Every schedule, size and stage; the other factors in turn, with steps that share no divisor with
// what they go beside.
std::vector<Cell> every_size() {
  std::vector<Cell> cells = all_cells();
  std::vector<Cell> chosen;
  std::uint32_t turn = 0;
  for (const Cell& cell : cells) {
    if (cell[clipping] + cell[buckets] + cell[policies] + cell[kind] > 0) {
      continue;
    }
    chosen.push_back(cell);
    chosen.back()[clipping] = turn % 2;
    chosen.back()[buckets] = turn / 2 % 3;
    chosen.back()[policies] = turn / 6 % 3;
    chosen.back()[kind] = turn / 18 % 3;
    turn += 5;
  }
  return chosen;
}

// In parts, which ctest can run side by side.
class Zero : public ::testing::TestWithParam<std::size_t> {
 public:
  static constexpr std::size_t kParts = 4;
};

TEST_P(Zero, ComputesWhatOneDeviceComputesUnderEverySchedule) {
  const bool large = std::getenv("PIPER_PARITY_LARGE") != nullptr;
  const std::vector<Cell> cells = large ? every_size() : covering_cells();
  for (std::size_t i = GetParam(); i < cells.size(); i += kParts) {
    if (is_legal(cells[i])) {
      expect_parity(cells[i]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Parity, Zero, ::testing::Range(std::size_t{0}, Zero::kParts));

TEST(ZeroRefusal, IsThatOfTheScheduleAtSizesThatItDoesNotTake) {
  std::size_t refused = 0;
  for (const Cell& cell : all_cells()) {
    const bool first = cell[clipping] + cell[buckets] + cell[policies] + cell[kind] == 0;
    if (first && !is_legal(cell)) {
      expect_refused(cell);
      ++refused;
    }
  }
  EXPECT_EQ(refused, 120U);
}

}  // namespace
}  // namespace piper

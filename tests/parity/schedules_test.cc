// Every pipeline schedule computes one device's loss, gradients, norm and update, at every size
// that it takes; other sizes are refused.
//
// The cells are every schedule x R in {2, 3, 4} x M in 1 .. 2R + 3 x dp in {1, 2} x {plain, tied
// embeddings, a frozen stage}, in float64 with SGD. Rows do not divide evenly into micro-batches,
// and no two micro-batches count equally many tokens. CI runs every schedule, R and M, each with
// one of the six pairs of dp and kind, in turn, so that each schedule meets every pair.
// PIPER_PARITY_LARGE=1 runs all.
//
// Every schedule is also run with fewer micro-batches than ranks; in every layout weights start as
// one device's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ostream>

#include "tests/parity/harness.h"

namespace piper {
namespace {

using testing::Case;

bool is_large() {
  return std::getenv("PIPER_PARITY_LARGE") != nullptr;
}

// What the references of a schedule take (docs/schedules.md), apart from the plugin.
bool takes_any(std::uint32_t, std::uint32_t) {
  return true;
}
bool takes_equal_groups(std::uint32_t ranks, std::uint32_t m) {
  return m % std::max(1U, m / ranks) == 0;
}
bool takes_twice_the_ranks(std::uint32_t ranks, std::uint32_t m) {
  return m >= 2 * ranks;
}
bool takes_two_halves(std::uint32_t ranks, std::uint32_t m) {
  return ranks % 2 == 0 && m % 2 == 0 && m >= 2 * ranks;
}

struct Schedule {
  const char *plugin, *name;
  std::uint32_t stages_per_rank;
  bool (*takes)(std::uint32_t ranks, std::uint32_t microbatches);
};

std::ostream& operator<<(std::ostream& out, const Schedule& schedule) {
  return out << schedule.name;
}

constexpr Schedule kSchedules[] = {
    {"interleaved1f1b", "gpipe", 1, takes_any},
    {"interleaved1f1b", "looped_bfs", 2, takes_any},
    {"interleaved1f1b", "1f1b", 1, takes_any},
    {"interleaved1f1b", "interleaved", 2, takes_any},
    {"zerobubble", "zb1p", 1, takes_any},
    {"zerobubble", "zb_h1", 1, takes_any},
    {"zerobubble", "interleaved_zb", 2, takes_equal_groups},
    {"zerobubble", "zbv", 2, takes_any},
    {"zerobubble", "v_zb", 2, takes_any},
    {"zerobubble", "v_half", 2, takes_any},
    {"zerobubble", "v_min", 2, takes_any},
    {"dualpipe", "dualpipev", 2, takes_twice_the_ranks},
    {"dualpipe", "dualpipe", 2, takes_two_halves},
};

enum class Kind : std::uint8_t { plain, tied, frozen };

Case cell(const Schedule& schedule, std::uint32_t ranks, std::uint32_t microbatches,
          std::uint32_t dp = 1, Kind kind = Kind::plain) {
  Case c;
  c.plugin = schedule.plugin, c.schedule = schedule.name;
  c.stages_per_rank = schedule.stages_per_rank;
  c.pp = ranks, c.dp = dp, c.microbatches = microbatches;
  c.layers = 9;  // not divided evenly, and enough for two stages on each of four ranks
  c.tied = kind == Kind::tied;
  if (kind == Kind::frozen) {
    // The first stages, which then have no backward, or others in the middle.
    c.freeze = {"model.layers.3.*", "model.layers.4.*"};
    if (microbatches / 2 % 2 == 0) {
      c.freeze.insert(c.freeze.end(), {"model.embed_tokens.weight", "model.layers.0.*",
                                       "model.layers.1.*", "model.layers.2.*"});
    } else {
      c.freeze.push_back("model.layers.5.*");
    }
  }
  return c;
}

std::vector<std::uint32_t> taken(const Schedule& schedule, std::uint32_t ranks) {
  std::vector<std::uint32_t> result;
  for (std::uint32_t m = 1; m <= 2 * ranks + 3; ++m) {
    if (schedule.takes(ranks, m)) {
      result.push_back(m);
    }
  }
  return result;
}

void expect_parity(const Case& c, std::int64_t steps) {
  const auto job = make_job(c);
  ASSERT_TRUE(job.has_value()) << to_string(c) << '\n' << to_string(job.error());
  VerifyOptions options;
  options.steps = steps;
  const auto report = verify_parity(*job, options, testing::uneven_batches(*job));
  ASSERT_TRUE(report.has_value()) << to_string(c) << '\n' << to_string(report.error());
  EXPECT_TRUE(report->passed) << to_string(c) << '\n' << report->text;
}

class Schedules : public ::testing::TestWithParam<Schedule> {};

TEST_P(Schedules, ComputeWhatOneDeviceComputes) {
  const Schedule& schedule = GetParam();
  const auto number_of = [](const Schedule& s) {
    return std::find_if(std::begin(kSchedules), std::end(kSchedules),
                        [&](const Schedule& other) { return other.name == s.name; }) -
           kSchedules;
  };
  auto number = static_cast<std::size_t>(number_of(schedule));  // each starts at another pair
  for (const std::uint32_t ranks : {2U, 3U, 4U}) {
    const std::vector<std::uint32_t> sizes = taken(schedule, ranks);
    for (const std::uint32_t m : sizes) {
      for (std::uint32_t pair = 0; pair < 6; ++pair) {
        if (is_large() || pair == number % 6) {
          const auto kind = static_cast<Kind>(pair % 3);
          const std::int64_t steps = kind == Kind::plain ? 2 : 1;
          expect_parity(cell(schedule, ranks, m, 1 + pair % 2, kind), steps);
        }
      }
      ++number;
    }
  }
}

TEST_P(Schedules, AreRefusedAtOtherSizes) {
  const Schedule& schedule = GetParam();
  for (const std::uint32_t ranks : {2U, 3U, 4U}) {
    for (std::uint32_t m = 1; m <= 2 * ranks + 3; ++m) {
      if (schedule.takes(ranks, m)) {
        continue;
      }
      const auto job = make_job(cell(schedule, ranks, m));
      ASSERT_FALSE(job.has_value()) << to_string(cell(schedule, ranks, m));
      const std::string code = job.error().front().code;
      EXPECT_TRUE(code == std::string(schedule.plugin) + ".microbatches" ||
                  code == std::string(schedule.plugin) + ".ranks")
          << to_string(job.error());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Pipeline, Schedules, ::testing::ValuesIn(kSchedules),
                         [](const auto& instance) {
                           const std::string name = instance.param.name;
                           return name == "1f1b" ? "one_f_one_b" : name;
                         });

}  // namespace
}  // namespace piper

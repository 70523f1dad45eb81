// Makespan, activations and messages of every schedule, for many sizes, against the formulas of its
// source; at unit cost (a forward, an I and a W of a stage take 1).
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/plugin_job.h"
#include "tests/support/toy_model.h"

namespace piper {
namespace {

struct Size {
  std::uint32_t ranks, stages_per_rank, microbatches;
  std::uint32_t all() const { return stages_per_rank * microbatches; }  // of a rank
};

std::ostream& operator<<(std::ostream& out, const Size& size) {
  return out << size.ranks << " ranks, " << size.stages_per_rank << " stages each, "
             << size.microbatches << " micro-batches";
}

// The sizes with these numbers of stages, and M from `least` times R on.
std::vector<Size> sizes(const std::vector<std::uint32_t>& stages_per_rank, std::uint32_t least) {
  std::vector<Size> list;
  for (const std::uint32_t r : {1U, 2U, 3U, 4U, 5U, 6U, 8U}) {
    for (const std::uint32_t v : stages_per_rank) {
      for (const std::uint32_t m :
           {1U, 2U, 3U, r, r + 1, 2 * r - 1, 2 * r, 2 * r + 3, 3 * r, 24U}) {
        if (m >= least * r) {
          list.push_back({r, v, m});
        }
      }
    }
  }
  return list;
}

struct Ran {
  test::UnitRun run;
  bool refused = false;
};

Ran run(const char* plugin, const char* schedule, const Size& size) {
  static const ModelGraph model = test::toy_model({.layers = 32});
  std::string options = std::string("schedule=") + schedule;
  options += " stages_per_rank=" + std::to_string(size.stages_per_rank);
  const auto proposals =
      test::propose({plugin, size.ranks, 1, size.microbatches, test::options_of(options)}, model);
  if (!proposals) {
    return {{}, true};
  }
  const bool both_ways = std::string(schedule) == "dualpipe";
  const std::uint32_t stages = both_ways ? size.ranks : size.ranks * size.stages_per_rank;
  Ran ran{test::run_at_unit_cost(test::rows_of(proposals->at(0)), stages, size.microbatches)};
  EXPECT_EQ(ran.run.problem, "") << schedule << " " << size;
  return ran;
}

std::uint32_t loop_messages(const Size& size) {
  const std::uint32_t stages = size.ranks * size.stages_per_rank;
  return size.ranks == 1 ? 0 : 2 * size.microbatches * (stages - 1);
}

std::uint32_t v_messages(const Size& size) {
  return 2 * size.microbatches * (2 * size.ranks - 2);
}

// PyTorch's size of a group of micro-batches; 0: it refuses.
std::uint32_t group(const Size& size) {
  const std::uint32_t rounds = std::max(1U, size.microbatches / size.ranks);
  return size.microbatches % rounds == 0 ? size.microbatches / rounds : 0;
}

TEST(Formulas, OfGpipe) {
  for (const Size& size : sizes({1}, 0)) {
    const test::UnitRun ran = run("interleaved1f1b", "gpipe", size).run;

    EXPECT_EQ(ran.makespan, 3 * (size.microbatches + size.ranks - 1)) << size;
    EXPECT_EQ(ran.held, std::vector<std::uint32_t>(size.ranks, size.microbatches)) << size;
    EXPECT_EQ(ran.messages, loop_messages(size)) << size;
  }
}

TEST(Formulas, Of1F1B) {
  for (const Size& size : sizes({1}, 0)) {
    const test::UnitRun ran = run("interleaved1f1b", "1f1b", size).run;

    EXPECT_EQ(ran.makespan, 3 * (size.microbatches + size.ranks - 1)) << size;
    for (std::uint32_t r = 0; r < size.ranks; ++r) {
      EXPECT_EQ(ran.held[r], std::min(size.microbatches, size.ranks - r)) << size << " " << r;
    }
    EXPECT_EQ(ran.messages, loop_messages(size)) << size;
  }
}

TEST(Formulas, OfLoopedBreadthFirst) {
  for (const Size& size : sizes({1, 2, 3}, 1)) {
    const test::UnitRun ran = run("interleaved1f1b", "looped_bfs", size).run;

    EXPECT_EQ(ran.makespan, 3 * (size.all() + size.ranks - 1)) << size;
    EXPECT_EQ(ran.held, std::vector<std::uint32_t>(size.ranks, size.all())) << size;
    EXPECT_EQ(ran.messages, loop_messages(size)) << size;
  }
}

TEST(Formulas, OfInterleaved1F1B) {
  for (const Size& size : sizes({1, 2, 3, 4}, 0)) {
    const auto [r, v, m] = size;
    const test::UnitRun ran = run("interleaved1f1b", "interleaved", size).run;
    if (group(size) == 0) {
      continue;  // planned in Megatron-LM's groups, for which there is no formula
    }

    const std::uint32_t few = m < r ? 3 * (v - 1) * (r - m) : 0;
    EXPECT_EQ(ran.makespan, 3 * (size.all() + r - 1) + few) << size;
    for (std::uint32_t rank = 0; rank < r; ++rank) {
      EXPECT_EQ(ran.held[rank],
                std::min(size.all(), (v - 1) * group(size) + 2 * (r - 1 - rank) + 1))
          << size << " " << rank;
    }
    EXPECT_EQ(ran.messages, loop_messages(size)) << size;
  }
}

void expect_zero_bubble(const char* schedule, const std::vector<std::uint32_t>& stages_per_rank) {
  for (const Size& size : sizes(stages_per_rank, 1)) {
    const auto [r, v, m] = size;
    const Ran ran = run("zerobubble", schedule, size);
    if (ran.refused) {
      EXPECT_EQ(group(size), 0U) << size;
      continue;
    }
    const std::uint32_t groups = v == 1 ? 1 : group(size);

    EXPECT_EQ(ran.run.makespan, 3 * size.all() + r - 1) << schedule << " " << size;
    EXPECT_EQ(ran.run.most_held(), std::min(size.all(), (v - 1) * groups + r))
        << schedule << " " << size;
    EXPECT_EQ(ran.run.messages, loop_messages(size)) << schedule << " " << size;
  }
}

TEST(Formulas, OfZB1P) {
  expect_zero_bubble("zb1p", {1});
}
TEST(Formulas, OfZBH1) {
  expect_zero_bubble("zb_h1", {1});
}
TEST(Formulas, OfInterleavedZeroBubble) {
  expect_zero_bubble("interleaved_zb", {1, 2, 3, 4});
}

// The same makespan and memory both ways; zbv also leaves no rank idle in between.
TEST(Formulas, OfZBV) {
  for (const char* schedule : {"zbv", "v_zb"}) {
    for (const Size& size : sizes({2}, 2)) {
      const test::UnitRun ran = run("zerobubble", schedule, size).run;

      EXPECT_EQ(ran.makespan, 6 * size.microbatches + size.ranks - 1) << schedule << " " << size;
      EXPECT_EQ(ran.held, std::vector<std::uint32_t>(size.ranks, 2 * size.ranks))
          << schedule << " " << size;
      EXPECT_EQ(ran.messages, v_messages(size)) << schedule << " " << size;
      if (std::string(schedule) == "zbv") {
        EXPECT_EQ(*std::max_element(ran.span.begin(), ran.span.end()), 6 * size.microbatches)
            << size;
      }
    }
  }
}

// Fewer micro-batches than zbv is made for.
TEST(Formulas, OfZBVWithFewMicrobatches) {
  for (std::uint32_t r = 3; r <= 8; ++r) {
    const Size size{r, 2, r};

    EXPECT_LT(run("zerobubble", "v_zb", size).run.makespan,
              run("zerobubble", "zbv", size).run.makespan)
        << size;
  }
}

// Half of the bubble of 1F1B, 3(R - 1) of each of the two stages; here a little less.
TEST(Formulas, OfVHalf) {
  for (const Size& size : sizes({2}, 2)) {
    const auto [r, v, m] = size;
    const std::uint32_t bubble = r == 1 ? 0 : r == 2 ? 1 : r % 2 == 0 ? 3 * r - 7 : 3 * r - 4;
    const test::UnitRun ran = run("zerobubble", "v_half", size).run;

    EXPECT_EQ(ran.makespan, 6 * m + bubble) << size;
    EXPECT_LE(bubble, 3 * (r - 1));
    EXPECT_EQ(ran.most_held(), r / 2 * 2 + 2) << size;
    EXPECT_EQ(ran.messages, v_messages(size)) << size;
  }
}

// The last slot of the last micro-batch's block, and its W.
TEST(Formulas, OfVMin) {
  for (const Size& size : sizes({2}, 2)) {
    const auto [r, v, m] = size;
    const test::UnitRun ran = run("zerobubble", "v_min", size).run;

    EXPECT_EQ(ran.makespan, r == 1 ? 6 * m : 6 * (m - 1) + 4 * r + (r % 3 == 0 ? 2 : 0) + 1)
        << size;
    EXPECT_EQ(ran.most_held(), 2 * ((r + 4) / 3)) << size;
    EXPECT_EQ(ran.messages, v_messages(size)) << size;
  }
}

TEST(Formulas, OfDualPipeV) {
  for (const Size& size : sizes({2}, 2)) {
    const test::UnitRun ran = run("dualpipe", "dualpipev", size).run;

    EXPECT_EQ(ran.makespan, 6 * size.microbatches + 2 * (size.ranks - 1)) << size;
    EXPECT_EQ(ran.most_held(), std::min(2 * size.microbatches, 2 * size.ranks + 1)) << size;
    EXPECT_EQ(ran.messages, v_messages(size)) << size;
  }
}

TEST(Formulas, OfDualPipe) {
  for (const Size& size : sizes({2}, 2)) {
    const auto [r, v, m] = size;
    const Ran ran = run("dualpipe", "dualpipe", size);
    EXPECT_EQ(ran.refused, r % 2 != 0 || m % 2 != 0) << size;
    if (ran.refused) {
      continue;
    }

    EXPECT_EQ(ran.run.makespan, 3 * m + 2 * (r / 2 - 1)) << size;
    EXPECT_EQ(ran.run.held, std::vector<std::uint32_t>(r, r + 1)) << size;
    EXPECT_EQ(ran.run.messages, 2 * m * (r - 1)) << size;
  }
}

}  // namespace
}  // namespace piper

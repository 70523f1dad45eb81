// The window bound against the largest state there is.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "core/plan/plan.h"
#include "core/verify/memory.h"
#include "tests/support/pipeline_plan.h"
#include "tests/support/plan_builder.h"
#include "tests/support/plan_oracle.h"

namespace piper {
namespace {

using test::most_live_bytes;
using test::pipeline;
using test::PipelineShape;

TEST(Peak, IsTheLargestStateOfAPipeline) {
  for (const std::uint32_t stages : {1U, 2U, 3U}) {
    for (const std::uint32_t microbatches : {1U, 2U, 3U}) {
      for (std::uint32_t flags = 0; flags < 16; ++flags) {
        PipelineShape shape{.stages = stages, .replicas = 2, .microbatches = microbatches};
        shape.tied = (flags & 1U) != 0;
        shape.split_backward = (flags & 2U) != 0;
        shape.folded = (flags & 4U) != 0 && stages % 2 == 0;
        shape.evaluates = (flags & 8U) != 0;
        auto made = pipeline(shape);
        for (Region& region : made.model.regions) {
          region.transient_bytes = {64, 8};
        }
        for (std::uint32_t p = 0; p < made.plan.programs.size(); ++p) {
          for (std::uint32_t coordinate = 0; coordinate < 2; ++coordinate) {
            const auto exact = most_live_bytes(made.plan, made.model, p, coordinate);
            ASSERT_TRUE(exact);
            EXPECT_EQ(peak_bytes(made.plan, made.model, p, coordinate), *exact)
                << stages << " stages, M " << microbatches << " flags " << flags;
          }
        }
      }
    }
  }
}

// Streams with random waits and buffers. With waits between streams that are not compute the bound
// may be above the largest state, never below.
Plan random_plan(std::uint32_t seed) {
  std::uint32_t state = seed * 2654435761u + 1;
  const auto random = [&state](std::uint32_t bound) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % bound;
  };
  test::PlanBuilder builder(1, 1);
  test::ProgramBuilder& program = builder.program({0});
  const std::uint32_t streams = 2 + random(3);
  std::vector<test::TaskRef> tasks;
  std::vector<std::uint32_t> positions(streams, 0);
  for (std::uint32_t s = 0; s < streams; ++s) {
    program.stream("s", s == 0 ? Stream::Kind::compute : Stream::Kind::communication);
  }
  std::vector<std::vector<BufferId>> live(streams);
  Task task;
  task.op = Op::input;
  for (std::uint32_t i = 0; i < 12; ++i) {
    const std::uint32_t s = random(streams);
    test::Uses uses;
    for (const test::TaskRef earlier : tasks) {
      if (earlier.stream != s && random(4) == 0) {
        uses.waits.push_back(earlier);
      }
      if (earlier.stream != s && random(20) == 0) {
        uses.previous.push_back(earlier);
      }
    }
    for (std::uint32_t b = 0; b < random(3); ++b) {
      Buffer buffer;
      buffer.bytes = {0, 1 + random(50)};
      uses.writes.push_back(program.buffer(buffer));
    }
    // A stream frees what it has allocated itself.
    while (!live[s].empty() && random(2) == 0) {
      uses.frees.push_back(live[s].back());
      live[s].pop_back();
    }
    live[s].insert(live[s].end(), uses.writes.begin(), uses.writes.end());
    tasks.push_back(program.task(StreamId{s}, task, uses));
  }
  for (std::uint32_t s = 0; s < streams; ++s) {
    test::Uses uses;
    uses.frees = live[s];
    program.task(StreamId{s}, task, uses);
  }
  return builder.build();
}

TEST(Peak, IsNeverBelowTheLargestStateOfRandomStreams) {
  double worst = 1;
  std::uint32_t exact_ones = 0;
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    const Plan plan = random_plan(seed);
    const auto exact = most_live_bytes(plan, {}, 0, 0);
    ASSERT_TRUE(exact);

    const std::int64_t bound = peak_bytes(plan, {}, 0, 0);

    ASSERT_GE(bound, *exact) << "seed " << seed << "\n" << print(plan, {});
    exact_ones += bound == *exact ? 1 : 0;
    worst = std::max(
        worst, static_cast<double>(bound) / static_cast<double>(std::max<std::int64_t>(*exact, 1)));
  }
  std::printf("  exact in %u of 300, worst ratio %.3f\n", exact_ones, worst);
}

TEST(Peak, CountsTheRowsOfTheCoordinate) {
  // 5 rows on 2 ranks: 3 and 2.
  auto made = pipeline({.stages = 1, .replicas = 2, .microbatches = 1});
  made.plan.global_rows = 5;

  const std::int64_t first = peak_bytes(made.plan, made.model, 0, 0);
  const std::int64_t second = peak_bytes(made.plan, made.model, 0, 1);

  // One row: tokens and labels (64); what three regions save (768); a gradient between two of them.
  EXPECT_EQ(first - second, 64 + 768 + 128);
}

}  // namespace
}  // namespace piper

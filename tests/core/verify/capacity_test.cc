// plan.capacity, and what a peak is made of.
#include <gtest/gtest.h>

#include <fstream>
#include <numeric>
#include <sstream>

#include "core/base/bytes.h"
#include "core/verify/memory.h"
#include "core/verify/verify.h"
#include "tests/support/pipeline_plan.h"

namespace piper {
namespace {

using test::pipeline;
using test::PipelineCase;

std::string refusal(const PipelineCase& made, std::int64_t capacity) {
  const Status status =
      check_capacity(Plans{made.plan, {}, {}}, made.model, capacity, {"job.toml", 4, 12});
  return status ? "" : to_string(status.error()) + '\n';
}

TEST(Bytes, AreReadWithTheirUnits) {
  EXPECT_EQ(parse_bytes("4096"), 4096);
  EXPECT_EQ(parse_bytes("40GiB"), std::int64_t{40} << 30);
  EXPECT_EQ(parse_bytes("1.5 KiB"), 1536);
  EXPECT_EQ(parse_bytes("2MB"), 2'000'000);
  for (const char* wrong :
       {"", "GiB", "0", "-1GiB", "1Gb", "1GiB ", "1  GiB", "nan", "inf", "1e40"}) {
    EXPECT_EQ(parse_bytes(wrong), std::nullopt) << wrong;
  }
}

TEST(Bytes, ArePrintedWithOneDecimal) {
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(1536), "1.5 KiB");
  EXPECT_EQ(human_bytes(std::int64_t{40} << 30), "40.0 GiB");
}

TEST(Peak, IsTheSumOfWhatItIsMadeOf) {
  for (std::uint32_t flags = 0; flags < 8; ++flags) {
    PipelineCase made = pipeline({.stages = 2,
                                  .replicas = 2,
                                  .microbatches = 3,
                                  .tied = (flags & 1U) != 0,
                                  .split_backward = (flags & 2U) != 0,
                                  .folded = (flags & 4U) != 0});
    for (Region& region : made.model.regions) {
      region.transient_bytes = {64, 8};
    }
    for (std::uint32_t p = 0; p < made.plan.programs.size(); ++p) {
      const Peak peak = memory_peak(made.plan, made.model, p, 1);

      EXPECT_EQ(peak.bytes, peak_bytes(made.plan, made.model, p, 1)) << flags;
      EXPECT_EQ(peak.bytes, std::accumulate(peak.of_kind.begin(), peak.of_kind.end(), 0LL))
          << flags;
      EXPECT_TRUE(valid(peak.task));
    }
  }
}

TEST(Capacity, IsRefusedFromTheFirstByteTooFew) {
  const PipelineCase made = pipeline({.stages = 2, .microbatches = 2});
  const std::int64_t most =
      std::max(peak_bytes(made.plan, made.model, 0, 0), peak_bytes(made.plan, made.model, 1, 0));

  EXPECT_EQ(refusal(made, most), "");
  EXPECT_NE(refusal(made, most - 1).find("[plan.capacity]"), std::string::npos);
}

TEST(Capacity, IsRefusedWithTheTaskAndTheLargestContributors) {
  const std::string text = refusal(pipeline({.stages = 2, .microbatches = 2}), 4096);
  std::ifstream file(std::string(PIPER_SOURCE_DIR) + "/docs/verifier.md");
  std::ostringstream docs;
  docs << file.rdbuf();

  EXPECT_NE(docs.str().find("\n```text\n" + text + "```\n"), std::string::npos)
      << "docs/verifier.md shows another message than\n"
      << text;
}

}  // namespace
}  // namespace piper

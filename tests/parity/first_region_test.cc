// The first half of a split backward goes on to lookups of the embedding in a region that reads
// tokens alone, so that the second needs no parameters, which may be gone by then.
#include <gtest/gtest.h>

#include <string>

#include "core/verify/memory.h"
#include "tests/parity/harness.h"

namespace piper {
namespace {

using testing::Case;
using testing::job_of;
using testing::Schedule;

constexpr Schedule kSplit[] = {{"zerobubble", "zb1p", 1}, {"zerobubble", "zbv", 2}};

Case cell(const Schedule& schedule, int stage) {
  Case c = testing::case_of(schedule);
  c.pp = 2, c.dp = 2, c.microbatches = 4;
  c.zero = "stage = " + std::to_string(stage);
  c.model = {"name = \"deep_embedding\"", "library = \"" PIPER_DEEP_EMBEDDING_MODEL "\"",
             "layers = 7"};
  return c;
}

TEST(FirstRegion, RereadsNoneOfSeveralParameters) {
  const Job job = job_of(cell(kSplit[0], 3));
  const Region& region = job.model.regions[0];

  ASSERT_EQ(region.parameters.size(), 3U);
  EXPECT_TRUE(region.reread_parameters.empty());
  EXPECT_FALSE(region.peaks->backward_input.of.empty()) << "BI goes through it";
}

TEST(FirstRegion, IsSplitWhateverIsSharded) {
  for (const Schedule& schedule : kSplit) {
    for (const int stage : {0, 3}) {
      const Case c = cell(schedule, stage);
      const Job job = job_of(c);
      VerifyOptions options;
      options.steps = 2;
      const auto report = verify_parity(job, options, testing::uneven_batches(job));
      ASSERT_TRUE(report.has_value()) << to_string(c) << '\n' << to_string(report.error());
      EXPECT_TRUE(report->passed) << to_string(c) << '\n' << report->text;
    }
  }
}

TEST(FirstRegion, HoldsWhatThePlanSays) {
  for (const Schedule& schedule : kSplit) {
    Case c = cell(schedule, 3);
    c.seq_len = 64, c.dtype = "float32";
    const Job job = job_of(c);
    const auto engine = Engine::create(job);
    ASSERT_TRUE(engine.has_value()) << to_string(engine.error());
    const auto step = [&](std::int64_t number) {
      const Batch batch = testing::uneven_batches(job)(number);
      return (*engine)->train_step(testing::feed(job.plans.train, batch, number));
    };
    ASSERT_TRUE(step(1).has_value());  // makes the optimizer's state at its end
    const auto result = step(2);
    ASSERT_TRUE(result.has_value()) << to_string(result.error());
    // The loss multiplies a value by itself. Without data its two gradients and their sum are three
    // tensors; on the CPU the sum is one of them.
    const double sum = static_cast<double>(
        job.model.value(job.model.regions.back().inputs[0]).bytes().at(/*rows=*/2));
    for (std::uint32_t rank = 0; rank < job.plans.train.world; ++rank) {
      const Plan::Seat seat = job.plans.train.seat(rank);
      const std::int64_t planned =
          peak_bytes(job.plans.train, job.model, seat.program, seat.coordinate);
      EXPECT_LE(result->peak_bytes[rank], planned) << to_string(c) << ", rank " << rank;
      EXPECT_GE(1.05 * static_cast<double>(result->peak_bytes[rank]),
                static_cast<double>(planned) - (rank < c.dp ? 0 : sum))
          << to_string(c) << ", rank " << rank;
    }
  }
}

}  // namespace
}  // namespace piper

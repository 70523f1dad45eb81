// What a rank holds while it evaluates is what the plan says: of a stage's values those that are
// read again.
#include <gtest/gtest.h>

#include <string>

#include "core/verify/rank_peaks.h"
#include "tests/parity/harness.h"

namespace piper {
namespace {

using testing::Case;
using testing::Schedule;

constexpr Schedule kSchedules[] = {
    {"interleaved1f1b", "gpipe", 1},
    {"interleaved1f1b", "interleaved", 2},
    {"zerobubble", "zbv", 2},
    {"dualpipe", "dualpipe", 2},
};

std::int64_t activations(const std::array<std::int64_t, kMemoryKinds>& of_kind) {
  return of_kind[static_cast<std::size_t>(MemoryKind::activation)];
}

TEST(Evaluation, HoldsTheActivationsThatThePlanSays) {
  for (const Schedule& schedule : kSchedules) {
    for (const std::uint32_t pp : {1U, 2U}) {
      Case c = testing::case_of(schedule);
      c.pp = pp, c.microbatches = 4, c.layers = 9, c.seq_len = 32, c.dtype = "float32";
      if (pp == 1 && c.schedule != "gpipe") {
        continue;
      }
      const Job job = testing::job_of(c);
      const Plan& plan = job.plans.evaluate;
      const auto engine = Engine::create(job);
      ASSERT_TRUE(engine.has_value()) << to_string(engine.error());

      const Batch batch = testing::uneven_batches(job)(1);
      const auto result = (*engine)->evaluate_step(testing::feed(plan, batch, 1));

      ASSERT_TRUE(result.has_value()) << to_string(result.error());
      for (std::uint32_t rank = 0; rank < plan.world; ++rank) {
        const Peak planned = memory_peak(plan, job.model, plan.seat(rank).program, 0);
        const std::int64_t most = activations(planned.of_kind) +
                                  planned.of_kind[static_cast<std::size_t>(MemoryKind::workspace)];
        const std::int64_t held = activations(result->peak_of_kind[rank]);
        EXPECT_LE(held, most) << "rank " << rank << ", " << to_string(c);
        EXPECT_LE(static_cast<double>(most), 1.05 * static_cast<double>(held))
            << "rank " << rank << ", " << to_string(c);
      }
      // Gradients, the optimizer's state and the arena of the training plan are there too.
      for (const RankPeak& own : rank_peaks(job.plans, Plan::Kind::evaluate, job.model)) {
        const std::int64_t most = own.peak.bytes;
        for (const std::uint32_t rank : own.ranks) {
          const std::int64_t held = result->peak_bytes[rank];
          EXPECT_LE(held, most) << "rank " << rank << ", " << to_string(c);
          EXPECT_LE(static_cast<double>(most), 1.05 * static_cast<double>(held))
              << "rank " << rank << ", " << to_string(c);
        }
      }
    }
  }
}

}  // namespace
}  // namespace piper

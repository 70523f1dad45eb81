// Faults that other systems had with sharded data parallelism, which this one must not have.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/verify/memory.h"
#include "tests/parity/harness.h"

namespace piper {
namespace {

using testing::Case;
using testing::job_of;

std::string stage(int number, const std::string& more = "bucket_bytes = 0") {
  return "stage = " + std::to_string(number) + '\n' + more;
}

void expect_parity(const Case& c, std::int64_t steps) {
  const Job job = job_of(c);
  VerifyOptions options;
  options.steps = steps;
  const auto report = verify_parity(job, options, testing::uneven_batches(job));
  ASSERT_TRUE(report.has_value()) << to_string(c) << '\n' << to_string(report.error());
  EXPECT_TRUE(report->passed) << to_string(c) << '\n' << report->text;
}

// What five steps gave, and the most that each rank held.
struct Ran {
  std::vector<std::int64_t> peaks, inputs;  // by rank: bytes; those of the step's rows among them
  std::vector<std::array<std::int64_t, kMemoryKinds>> of_kind;  // by rank: peaks of each kind
  std::vector<double> losses, norms;
};
Ran run(const Case& c) {
  const Job job = job_of(c);
  auto engine = Engine::create(job);
  EXPECT_TRUE(engine.has_value()) << to_string(engine.error());
  const GlobalBatch batches = testing::uneven_batches(job);
  Ran ran;
  for (std::int64_t step = 1; step <= 5; ++step) {
    const Batch batch = batches(step);
    const auto result = (*engine)->train_step(testing::feed(job.plans.train, batch, step));
    EXPECT_TRUE(result.has_value()) << to_string(c) << '\n' << to_string(result.error());
    ran.losses.push_back(result->loss);
    ran.norms.push_back(result->grad_norm);
    ran.peaks = result->peak_bytes;
    ran.of_kind = result->peak_of_kind;
  }
  for (std::uint32_t rank = 0; rank < job.plans.train.world; ++rank) {
    const Plan::Seat seat = job.plans.train.seat(rank);
    const Program& program = job.plans.train.programs[seat.program];
    ran.inputs.push_back(0);
    for (const Buffer& buffer : program.buffers) {
      if (buffer.kind == Buffer::Kind::input) {
        ran.inputs.back() += bytes_of(job.plans.train, program, seat.coordinate, buffer);
      }
    }
  }
  return ran;
}

void expect_one_peak(Case c, const std::vector<std::uint32_t>& microbatches) {
  std::vector<std::vector<std::int64_t>> peaks;
  for (const std::uint32_t m : microbatches) {
    c.microbatches = m;
    c.rows = std::int64_t{c.dp} * m;
    const Ran ran = run(c);
    peaks.push_back(ran.peaks);
    for (std::size_t rank = 0; rank < ran.peaks.size(); ++rank) {
      peaks.back()[rank] -= ran.inputs[rank];  // all of a step's rows are there from its start
    }
    EXPECT_EQ(peaks.back(), peaks.front()) << to_string(c);
  }
}

// Whole gradients, and in stage 3 whole parameters, live through a chain, however many
// micro-batches there are.
TEST(ZeroFaults, KeepAsMuchMemoryForMoreMicrobatches) {
  for (const int number : {2, 3}) {
    Case c;
    c.pp = 2, c.dp = 2, c.layers = 6, c.zero = stage(number, "bucket_bytes = 1");
    expect_one_peak(c, {4, 16});
  }
}

// Gradients that accumulate are one copy, however many micro-batches there are.
TEST(ZeroFaults, KeepAsMuchMemoryForMoreMicrobatchesOfStageOne) {
  Case c;
  c.pp = 4, c.dp = 2, c.zero = stage(1);
  expect_one_peak(c, {4, 8, 32});
}

// Each stage of ZeRO holds less than the one before, in the plan and in the run.
TEST(ZeroFaults, HoldLessForEachStage) {
  Case c;
  c.dp = 4, c.microbatches = 4, c.layers = 6, c.optimizer = "adamw";
  c.pipeline_of_one = true;  // one micro-batch after the other, so that gradients accumulate
  std::int64_t measured = 0, planned = 0;
  for (const int number : {0, 1, 2, 3}) {
    c.zero = stage(number, "bucket_bytes = 1");
    const Job job = job_of(c);
    const std::int64_t now = run(c).peaks[0], plan = peak_bytes(job.plans.train, job.model, 0, 0);
    EXPECT_TRUE(number == 0 || now < measured) << "stage " << number << ": " << now << " bytes";
    EXPECT_TRUE(number == 0 || plan < planned) << "stage " << number << ": " << plan << " bytes";
    measured = now, planned = plan;
  }
}

// One rank shards nothing, and its stages accumulate.
TEST(ZeroFaults, AccumulateWhereOneRankHoldsAll) {
  Case c;
  c.schedule = "interleaved", c.stages_per_rank = 2, c.pipeline_of_one = true;
  c.microbatches = 4;
  for (const int number : {1, 2, 3}) {
    c.zero = stage(number);
    expect_parity(c, 1);
  }
}

// Many backwards a step, each reduced once; a lone bucket's chain is as long as the step.
TEST(ZeroFaults, ReduceEveryMicrobatchUnderAPipeline) {
  Case c;
  c.pp = 2, c.dp = 2, c.microbatches = 5;
  for (const int number : {2, 3}) {
    for (const std::string buckets : {"bucket_bytes = 0", "bucket_bytes = 1"}) {
      c.zero = stage(number, buckets);
      expect_parity(c, 2);
    }
  }
}

// A tied weight that no number of ranks divides, in an optimizer group of its own:
// both copies have one update.
TEST(ZeroFaults, KeepTiedCopiesEqualInAGroupOfTheirOwn) {
  Case c;
  c.pp = 2, c.dp = 3, c.microbatches = 3, c.tied = true, c.optimizer = "adamw";
  c.sections = {
      "[[optimizer.group]]\nparameters = \"*embed_tokens*\"\nlr = 0.02\nweight_decay = 0"};
  for (const int number : {1, 2, 3}) {
    c.zero = stage(number, "bucket_bytes = 4000");
    expect_parity(c, 5);
  }
}

// Everything of the first stage frozen, or a layer within one, with either backward.
const std::vector<std::vector<std::string>> kFrozen = {
    {"model.embed_tokens.weight", "model.layers.0.*", "model.layers.1.*"}, {"model.layers.2.*"}};

Case frozen_case(const std::vector<std::string>& freeze, const std::string& schedule, int number) {
  Case c;
  c.plugin = schedule == "zb1p" ? "zerobubble" : "interleaved1f1b", c.schedule = schedule;
  c.pp = 2, c.dp = 2, c.microbatches = 3;
  c.freeze = freeze;
  c.zero = stage(number, "bucket_bytes = 4000");
  return c;
}

TEST(ZeroFaults, LeaveFrozenParametersAlone) {
  for (const std::vector<std::string>& freeze : kFrozen) {
    for (const std::string schedule : {"zb1p", "1f1b"}) {
      for (const int number : {0, 1, 2, 3}) {
        expect_parity(frozen_case(freeze, schedule, number), 2);
      }
    }
  }
}

TEST(ZeroFaults, KeepNoGradientsOrOptimizerForFrozenParameters) {
  for (const int number : {0, 1, 2, 3}) {
    const Ran ran = run(frozen_case(kFrozen[0], "1f1b", number));
    const std::size_t first_stage = 0, last_stage = ran.of_kind.size() - 1;
    for (const MemoryKind kind : {MemoryKind::gradient, MemoryKind::optimizer}) {
      const auto of = static_cast<std::size_t>(kind);
      EXPECT_EQ(ran.of_kind[first_stage][of], 0) << to_string(kind) << " in stage " << number;
      EXPECT_GT(ran.of_kind[last_stage][of], 0) << to_string(kind) << " in stage " << number;
    }
  }
}

// DeepSpeed#7965: memory that is used again too early shows after some steps: every stage has the
// same losses.
TEST(ZeroFaults, HaveTheLossesOfStageZeroStepAfterStep) {
  Case c;
  c.pp = 2, c.dp = 2, c.microbatches = 5, c.max_norm = 0.5;
  c.zero = stage(0);
  const Ran plain = run(c);
  for (const int number : {1, 2, 3}) {
    c.zero = stage(number, "bucket_bytes = 1\nprefetch = 2");
    const Ran sharded = run(c);
    for (std::size_t step = 0; step < plain.losses.size(); ++step) {
      EXPECT_NEAR(sharded.losses[step], plain.losses[step], 1e-11);
      EXPECT_NEAR(sharded.norms[step], plain.norms[step], 1e-11);
    }
  }
}

// Masters of the parts are kept in float32; what is gathered is their rounding.
TEST(ZeroFaults, RoundBfloat16ParametersFromMasterParts) {
  for (const int number : {1, 2, 3}) {
    Case c;
    c.pp = 2, c.dp = 2, c.microbatches = 3, c.dtype = "bfloat16", c.optimizer = "adamw";
    c.zero = stage(number, "bucket_bytes = 4000");
    expect_parity(c, 2);
  }
}

}  // namespace
}  // namespace piper

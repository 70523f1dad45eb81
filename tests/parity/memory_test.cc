// What a rank holds while it trains is what the plan says: never more, and hardly less.
//
// `ctest` runs every schedule on the small model, and two on the quick start's;
// PIPER_PARITY_LARGE=1 runs all on both.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ostream>
#include <string>

#include "core/verify/memory.h"
#include "runtime/exec/create_engine.h"
#include "runtime/models/find_model.h"
#include "tests/parity/harness.h"
#include "tests/support/wrapped_task.h"

namespace piper {
namespace {

using testing::Case;
using testing::job_of;
using testing::Schedule;

constexpr Schedule kSchedules[] = {
    {"interleaved1f1b", "gpipe", 1},
    {"interleaved1f1b", "1f1b", 1},
    {"interleaved1f1b", "interleaved", 2},
    {"zerobubble", "zb1p", 1},
    {"zerobubble", "zbv", 2},
    {"dualpipe", "dualpipev", 2},
    {"dualpipe", "dualpipe", 2},
};

// 11 rows in 8 micro-batches: some have two.
Case small(const Schedule& schedule, std::uint32_t pp, const std::string& dtype = "float32") {
  Case c = testing::case_of(schedule);
  c.pp = pp, c.microbatches = 8, c.rows = 11;
  c.layers = 9, c.seq_len = 32;
  c.dtype = dtype, c.optimizer = "adamw", c.max_norm = 1;
  return c;
}

Case quick_start(const Schedule& schedule, std::uint32_t pp) {
  Case c = small(schedule, pp);
  c.seq_len = 128;
  c.model = {"name = \"qwen3\"", "layers = 8",    "dim = 192", "heads = 6",
             "kv_heads = 2",     "head_dim = 32", "ffn = 512", "vocab = 257"};
  return c;
}

// Some steps of a job, and how far the plan is above what they held at most.
class Measured {
 public:
  explicit Measured(Job job) : job_(std::move(job)), batches_(testing::uneven_batches(job_)) {
    auto engine = create_engine(
        job_, EngineParts{.model = [&] { return build_model(job_.config, /*measure=*/false); },
                          .wrap = test::delays(delays_)});
    EXPECT_TRUE(engine) << to_string(engine.error());
    engine_ = std::move(*engine);
  }

  StepResult step(std::uint64_t delays = 0) {
    const Batch batch = batches_(++step_);
    StepInput input = testing::feed(job_.plans.train, batch, step_);
    *delays_ = delays;
    const auto done = engine_->train_step(input);
    EXPECT_TRUE(done) << to_string(done.error());
    return done ? *done : StepResult{};
  }

  // Of planned to measured bytes over the ranks: the smallest, and the largest where the plan
  // leaves out what kernels take inside.
  struct Ratios {
    double least = 1e9, most = 0;
  };
  Ratios ratios(const StepResult& result) const {
    ModelGraph without_workspace = job_.model;
    for (Region& region : without_workspace.regions) {
      region.workspace.clear();
    }
    Ratios found;
    for (std::uint32_t rank = 0; rank < job_.plans.train.world; ++rank) {
      const Plan::Seat seat = job_.plans.train.seat(rank);
      const auto ratio = [&](const ModelGraph& model) {
        return static_cast<double>(
                   peak_bytes(job_.plans.train, model, seat.program, seat.coordinate)) /
               static_cast<double>(result.peak_bytes[rank]);
      };
      found.least = std::min(found.least, ratio(job_.model));
      found.most = std::max(found.most, ratio(without_workspace));
    }
    return found;
  }

 private:
  std::shared_ptr<std::uint64_t> delays_ = std::make_shared<std::uint64_t>(0);
  Job job_;
  GlobalBatch batches_;
  std::unique_ptr<Engine> engine_;
  std::int64_t step_ = 0;
};

void expect_as_planned(const Case& c, std::uint64_t delays = 0) {
  Job job = job_of(c);
  ASSERT_FALSE(job.plans.train.programs.empty());
  Measured measured(std::move(job));
  StepResult last;
  for (int step = 0; step < 3; ++step) {
    last = measured.step(delays == 0 ? 0 : delays + static_cast<std::uint64_t>(step));
    EXPECT_GE(measured.ratios(last).least, 1) << to_string(c);
  }

  const Measured::Ratios ratios = measured.ratios(last);
  std::printf("  planned / measured %.4f to %.4f: %s\n", ratios.least, ratios.most,
              to_string(c).c_str());
  EXPECT_LE(ratios.most, 1.05) << to_string(c);
}

TEST(Memory, OfEachKindIsWhatThePlanSays) {
  for (const char* const dtype : {"float32", "bfloat16"}) {
    Job job = job_of(small(kSchedules[1], 2, dtype));
    const Plan plan = job.plans.train;
    const ModelGraph model = job.model;
    Measured measured(std::move(job));
    const StepResult result = measured.step();
    for (std::uint32_t rank = 0; rank < plan.world; ++rank) {
      const Peak planned = memory_peak(plan, model, plan.seat(rank).program, 0);
      const auto expect_equal = [&](MemoryKind kind) {
        const auto of = static_cast<std::size_t>(kind);
        EXPECT_EQ(result.peak_of_kind[rank][of], planned.of_kind[of])
            << to_string(kind) << " on rank " << rank << ", " << dtype;
      };
      expect_equal(MemoryKind::parameter);
      expect_equal(MemoryKind::gradient);
      expect_equal(MemoryKind::optimizer);
      expect_equal(MemoryKind::communication);
      EXPECT_GT(result.peak_of_kind[rank][static_cast<std::size_t>(MemoryKind::activation)], 0);
    }
  }
}

bool is_large() {
  return std::getenv("PIPER_PARITY_LARGE") != nullptr;
}

class ScheduleMemory : public ::testing::TestWithParam<Schedule> {};

TEST_P(ScheduleMemory, IsWhatThePlanSays) {
  for (const std::uint32_t pp : {1U, 2U, 4U}) {
    if (pp == 1 && GetParam().name == std::string("dualpipe")) {
      continue;  // it needs two ranks
    }
    Case c = small(GetParam(), pp);
    c.pipeline_of_one = true;
    expect_as_planned(c);
    if (is_large()) {
      expect_as_planned(quick_start(GetParam(), pp));
    }
  }
}

TEST_P(ScheduleMemory, IsWithinThePlanWhateverTheTiming) {
  for (const std::uint64_t seed :
       is_large() ? std::vector<std::uint64_t>{1, 100, 200, 300} : std::vector<std::uint64_t>{1}) {
    expect_as_planned(small(GetParam(), 2), seed);
    expect_as_planned(small(GetParam(), 4), seed);
  }
}

INSTANTIATE_TEST_SUITE_P(Pipeline, ScheduleMemory, ::testing::ValuesIn(kSchedules),
                         [](const auto& instance) {
                           const std::string name = instance.param.name;
                           return name == "1f1b" ? "one_f_one_b" : name;
                         });

TEST(Memory, OfOneRankIsWhatThePlanSaysInEveryType) {
  for (const char* const dtype : {"float32", "float64", "bfloat16"}) {
    expect_as_planned(small(kSchedules[1], 1, dtype));
    expect_as_planned(small(kSchedules[3], 2, dtype));
  }
}

TEST(Memory, OfShardedParametersOfBfloat16IsWhatThePlanSays) {
  for (const Schedule& schedule : {kSchedules[1], kSchedules[4]}) {
    Case c = small(schedule, 2, "bfloat16");
    c.dp = 2, c.rows = 19, c.zero = "stage = 3";
    expect_as_planned(c);
  }
}

TEST(Memory, OfTheQuickStartIsWhatThePlanSays) {
  expect_as_planned(quick_start(kSchedules[1], 2));
}

TEST(Memory, OfEveryStageOfZeroIsWhatThePlanSays) {
  for (const char* const schedule : {"1f1b", "zbv"}) {
    for (const char* const stage : {"0", "1", "2", "3"}) {
      for (const std::string policy : {"chain", "step"}) {
        Case c =
            small(*std::find_if(std::begin(kSchedules), std::end(kSchedules),
                                [&](const Schedule& s) { return s.name == std::string(schedule); }),
                  2);
        c.dp = 2, c.rows = 19;
        c.zero = std::string("stage = ") + stage + "\nkeep_gathered = \"" + policy +
                 "\"\nreduce = \"" + policy + '"';
        expect_as_planned(c);
      }
    }
  }
}

TEST(Memory, OfRecomputationIsWhatThePlanSays) {
  for (const Schedule& schedule : kSchedules) {
    for (const std::string mode :
         {"mode = \"full\"", "mode = \"selective\"\nfilter = { attention = \"*\" }"}) {
      Case c = small(schedule, 2);
      c.sections = {"[activation_checkpoint]\n" + mode};
      expect_as_planned(c);
    }
  }
}

// BI then goes through the first region that trains.
TEST(Memory, OfAFrozenEmbeddingIsWhatThePlanSays) {
  for (const Schedule& schedule : kSchedules) {
    Case c = small(schedule, 2);
    c.freeze = {"model.embed_tokens.weight"};
    expect_as_planned(c);
  }
}

// The second rank's first trained stage gets values without a gradient.
TEST(Memory, OfFrozenFirstStagesIsWhatThePlanSays) {
  for (const Schedule& schedule :
       {Schedule{"zerobubble", "v_min", 2}, kSchedules[3], kSchedules[4], kSchedules[5]}) {
    Case c = small(schedule, 2);
    c.layers = 4;
    c.freeze = {"model.embed_tokens.weight", "model.layers.0.*", "model.layers.1.*"};
    expect_as_planned(c);
  }
}

TEST(Memory, DoesNotGrow) {
  Case sharded = small(kSchedules[5], 2);
  sharded.dp = 2, sharded.rows = 19, sharded.zero = "stage = 3";
  for (Case c : {small(kSchedules[1], 2), small(kSchedules[4], 2), sharded}) {
    c.layers = 4, c.seq_len = 8;
    Measured measured(job_of(c));
    const StepResult early = [&] {
      measured.step();
      return measured.step();
    }();
    StepResult late;
    for (int step = 2; step < 200; ++step) {
      late = measured.step();
    }

    EXPECT_EQ(late.live_bytes, early.live_bytes);
    EXPECT_GE(measured.ratios(late).least, 1);
  }
}

}  // namespace
}  // namespace piper

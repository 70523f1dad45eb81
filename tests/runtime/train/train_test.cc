#include "runtime/train/train.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/optim/optimizer.h"
#include "tests/runtime/train/fixture.h"

namespace piper {
namespace {

using testing::expect_error;
using testing::FakeEngine;

using testing::kLabels;
using testing::kTokens;
using testing::Train;

TEST_F(Train, GivesEachRankItsBlockOfTheStepsRows) {
  ASSERT_TRUE(run().has_value());

  ASSERT_EQ(record_.trained.size(), 4u);
  for (const FakeEngine::Asked& asked : record_.trained) {
    EXPECT_EQ(asked.batches[0].at(kTokens).size(0), 3);
    EXPECT_EQ(asked.batches[1].at(kTokens).size(0), 2);
    EXPECT_EQ(asked.batches[1].at(kLabels).size(0), 2);
  }
}

TEST_F(Train, CountsStepsFromOneAndFollowsTheSchedule) {
  job_.config.lr_scheduler.warmup_steps = 2;

  ASSERT_TRUE(run().has_value());

  for (std::int64_t step = 1; step <= 4; ++step) {
    const FakeEngine::Asked& asked = record_.trained[static_cast<std::size_t>(step - 1)];
    EXPECT_EQ(asked.step, step);
    EXPECT_EQ(asked.lr_factor, piper::lr_factor(job_.config.lr_scheduler, step, 4));
  }
}

TEST_F(Train, WritesAnObjectAStepToTheMetricsFile) {
  ASSERT_TRUE(run().has_value());

  ASSERT_EQ(metrics().size(), 4u);
  EXPECT_EQ(metrics()[3]["step"], 4);
  EXPECT_EQ(metrics()[3]["loss"], 2.0);
  EXPECT_EQ(metrics()[3]["planned_peak_bytes"].size(), 2u);
}

// Uneven batches and ranks. The fake's loss of a batch is the mean of its rows' numbers over
// counted labels.
TEST_F(Train, TheHeldOutLossWeighsEveryCountedLabelOnce) {
  double sum = 0, count = 0;
  const auto source = load_dataset(job_.config, job_.model);
  ASSERT_TRUE(source.has_value());
  ASSERT_EQ((*source)->rows(Part::held_out), 7);
  for (std::int64_t held_out = 0; held_out < 7; ++held_out) {
    const std::int64_t row =
        testing::read_row(**source, Part::held_out, held_out, fields_of(job_.model)[0])[0];
    sum += static_cast<double>(row * (row % 3));
    count += static_cast<double>(row % 3);
  }
  engine_->on_evaluate = [](const FakeEngine::Asked& asked) {
    StepResult result;
    for (const Batch& batch : asked.batches) {
      const at::Tensor labels = batch.at(kLabels), tokens = batch.at(kTokens);
      for (std::int64_t i = 0; i < labels.size(0); ++i) {
        const auto counted = labels[i].ne(-100).sum().item<std::int64_t>();
        result.tokens += counted;
        result.loss += static_cast<double>(counted * tokens[i][0].item<std::int64_t>());
      }
    }
    result.loss /= static_cast<double>(result.tokens);
    return result;
  };

  const auto summary = run();

  ASSERT_TRUE(summary.has_value());
  EXPECT_EQ(record_.evaluated.size(), 2u);
  EXPECT_DOUBLE_EQ(summary->held_out_loss.value(), sum / count);
  EXPECT_EQ(metrics()[3]["held_out_loss"], *summary->held_out_loss);
}

TEST_F(Train, EvaluatesAsOftenAsTheJobSaysAndAtTheEndOnce) {
  job_.config.validation.freq = 2;
  job_.config.validation.steps = 1;
  engine_->on_evaluate = [](const FakeEngine::Asked&) {
    StepResult result;
    result.tokens = 1;
    return result;
  };

  ASSERT_TRUE(run().has_value());

  EXPECT_EQ(record_.evaluated.size(), 2u);
}

TEST_F(Train, WithoutHeldOutRowsThereIsNoHeldOutLoss) {
  job_.config.validation.fraction = 0;

  const auto summary = run();

  ASSERT_TRUE(summary.has_value());
  EXPECT_FALSE(summary->held_out_loss.has_value());
  EXPECT_TRUE(record_.evaluated.empty());
}

// At the very step, whatever is logged.
TEST_F(Train, StopsAtTheStepThatIsNotFinite) {
  job_.config.metrics.log_freq = 10;
  engine_->on_train = [](const FakeEngine::Asked& asked) {
    StepResult result;
    result.tokens = 1;
    result.finite = asked.step != 3;
    result.loss = result.finite ? 1 : std::numeric_limits<double>::quiet_NaN();
    return result;
  };

  const auto summary = run();

  expect_error(summary, "run.non_finite",
               "step 3: expected finite numbers, got loss nan and gradient norm 0.000000; the "
               "weights are those of step 2");
  EXPECT_EQ(record_.trained.size(), 3u);
}

TEST_F(Train, ASkippedUpdateCountsNeitherForTheOptimizerNorForTheSchedule) {
  job_.config.training.non_finite = NonFinite::skip;
  job_.config.lr_scheduler.warmup_steps = 4;
  int calls = 0;
  engine_->on_train = [&](const FakeEngine::Asked&) {
    StepResult result;
    result.tokens = 1;
    result.finite = ++calls != 2;
    return result;
  };

  const auto summary = run();

  ASSERT_TRUE(summary.has_value());
  std::vector<std::int64_t> steps;
  for (const FakeEngine::Asked& asked : record_.trained) {
    steps.push_back(asked.step);
  }
  EXPECT_EQ(steps, (std::vector<std::int64_t>{1, 2, 2, 3}));
  EXPECT_EQ(record_.trained[1].lr_factor, record_.trained[2].lr_factor);
  EXPECT_FALSE(
      record_.trained[1].batches[0].at(kTokens).equal(record_.trained[2].batches[0].at(kTokens)));
}

TEST_F(Train, AStepWithoutACountedLabelCountsAsAStepAndMakesNoUpdate) {
  job_.config.lr_scheduler.warmup_steps = 4;
  int calls = 0;
  engine_->on_train = [&](const FakeEngine::Asked&) {
    StepResult result;
    result.tokens = ++calls == 2 ? 0 : 5;
    result.loss = calls == 2 ? std::nan("") : calls;
    return result;
  };

  const auto summary = run();

  ASSERT_TRUE(summary.has_value());
  std::vector<std::int64_t> updates;
  for (const FakeEngine::Asked& asked : record_.trained) {
    updates.push_back(asked.step);
  }
  EXPECT_EQ(updates, (std::vector<std::int64_t>{1, 2, 2, 3}));
  EXPECT_EQ(record_.trained[1].lr_factor, record_.trained[2].lr_factor);
  ASSERT_EQ(metrics().size(), 4u);
  EXPECT_TRUE(metrics()[1]["loss"].is_null());
  EXPECT_EQ(metrics()[1]["step"], 2);
  EXPECT_EQ(metrics()[2]["loss"], 3);
  EXPECT_EQ(summary->steps, 4);
}

TEST_F(Train, ARunWithoutACountedLabelHasNoLoss) {
  engine_->on_train = [](const FakeEngine::Asked&) { return StepResult{}; };

  ::testing::internal::CaptureStderr();
  const auto summary = run();
  const std::string said = ::testing::internal::GetCapturedStderr();

  ASSERT_TRUE(summary.has_value());
  EXPECT_FALSE(summary->loss.has_value());
  EXPECT_NE(said.find("warning: expected labels other than -100 in the 5 rows of step 1, got none"),
            std::string::npos)
      << said;
  EXPECT_EQ(said.find("of step 2"), std::string::npos) << "one remark is enough";
}

TEST_F(Train, AnErrorOfTheEngineEndsTheRun) {
  engine_->on_train = [](const FakeEngine::Asked&) -> Expected<StepResult> {
    return fail(error("run.exception", "rank 1: boom"));
  };

  expect_error(run(), "run.exception", "rank 1: boom");
}

TEST_F(Train, TokensPerSecondLeaveTheFirstStepOut) {
  engine_->on_train = [](const FakeEngine::Asked& asked) {
    StepResult result;
    result.tokens = asked.step == 1 ? 1'000'000'000 : 1;
    return result;
  };

  const auto summary = run();

  ASSERT_TRUE(summary.has_value());
  const auto lines = metrics();
  double seconds = 0;
  for (int i = 1; i < 4; ++i) {
    seconds += lines[static_cast<std::size_t>(i)]["step_seconds"].get<double>();
  }
  EXPECT_NEAR(summary->tokens_per_second, 3 / seconds, 1e-6 * summary->tokens_per_second);
}

}  // namespace
}  // namespace piper

// How runs end before their last step, and what is saved then.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <limits>
#include <stdexcept>
#include <thread>

#include "runtime/checkpoint/safetensors.h"
#include "tests/runtime/train/fixture.h"

namespace piper {
namespace {

namespace fs = std::filesystem;
using testing::expect_error;
using testing::FakeEngine;

constexpr double kNothing = -1;

// After each step the weight is the number of the step.
class Ending : public testing::Train {
 protected:
  Ending() {
    job_.config.checkpoint.last_save_path = folder_.path("out");
    engine_->weight = 0;
  }

  // The engine runs `at` within the step that it is for, before an update.
  void in_step(std::int64_t step, std::function<Status()> at) {
    engine_->on_train = [this, step, at](const FakeEngine::Asked& asked) -> Expected<StepResult> {
      if (asked.step == step) {
        PIPER_TRY(at());
      }
      engine_->weight += 1;
      StepResult result;
      result.loss = 7;
      result.tokens = 1;
      return result;
    };
  }

  Status cancelled() {
    while (engine_->cancelled.empty()) {  // as the engine waits for its ranks
      std::this_thread::yield();
    }
    return fail(error("run.cancelled", "interrupted"));
  }

  // The step whose weights are in a folder.
  double saved(const std::string& folder = "out") const {
    if (!fs::exists(folder_.path(folder))) {
      return kNothing;
    }
    const auto tensors = load_tensors(folder_.path(folder));
    EXPECT_TRUE(tensors.has_value()) << to_string(tensors.error());
    return tensors ? tensors->at("w").item<double>() : kNothing;
  }
};

TEST_F(Ending, ARunSavesTheWeightsOfItsLastStep) {
  const auto summary = run();

  ASSERT_TRUE(summary.has_value());
  EXPECT_EQ(summary->weights, folder_.path("out"));
  EXPECT_TRUE(summary->problems.empty());
  EXPECT_EQ(saved(), 4);
}

class Signalled : public Ending, public ::testing::WithParamInterface<int> {};

TEST_P(Signalled, ASignalEndsTheRunAfterItsStepAndSavesTheWeights) {
  in_step(2, [this]() -> Status {
    std::raise(GetParam());
    return {};
  });

  const auto summary = run();

  ASSERT_TRUE(summary.has_value());
  EXPECT_TRUE(summary->interrupted);
  EXPECT_EQ(summary->steps, 2);
  EXPECT_EQ(summary->loss, 7);
  EXPECT_EQ(summary->weights, folder_.path("out"));
  EXPECT_EQ(saved(), 2);
  EXPECT_TRUE(record_.evaluated.empty());
  EXPECT_TRUE(record_.cancelled.empty());
  EXPECT_EQ(metrics().size(), 2u);
}

INSTANTIATE_TEST_SUITE_P(Signals, Signalled, ::testing::Values(SIGINT, SIGTERM));

TEST_F(Ending, WithoutAFolderASignalSavesNothingAndSaysSo) {
  job_.config.checkpoint.last_save_path.clear();
  in_step(2, []() -> Status {
    std::raise(SIGINT);
    return {};
  });

  ::testing::internal::CaptureStdout();
  const auto summary = run();
  std::fflush(stdout);
  const std::string said = ::testing::internal::GetCapturedStdout();

  ASSERT_TRUE(summary.has_value());
  EXPECT_EQ(summary->weights, "");
  EXPECT_NE(said.find("the weights were not saved: checkpoint.last_save_path is not given\n"),
            std::string::npos)
      << said;
}

TEST_F(Ending, ASecondSignalEndsTheStepItselfAndSavesTheWeightsOfTheOneBefore) {
  in_step(3, [this]() -> Status {
    std::raise(SIGINT);
    std::raise(SIGTERM);
    return cancelled();
  });

  const auto summary = run();

  ASSERT_TRUE(summary.has_value());
  EXPECT_TRUE(summary->interrupted);
  EXPECT_EQ(summary->steps, 2);
  EXPECT_EQ(saved(), 2);
}

TEST_F(Ending, ASecondSignalAmongUpdatesSavesNothing) {
  in_step(3, [this]() -> Status {
    std::raise(SIGINT);
    std::raise(SIGINT);
    engine_->whole = false;
    return cancelled();
  });

  ::testing::internal::CaptureStdout();
  const auto summary = run();
  std::fflush(stdout);
  const std::string said = ::testing::internal::GetCapturedStdout();

  ASSERT_TRUE(summary.has_value());
  EXPECT_TRUE(summary->interrupted);
  EXPECT_EQ(summary->weights, "");
  EXPECT_EQ(saved(), kNothing);
  EXPECT_NE(said.find("the weights were not saved: step 3 ended while ranks were updating theirs, "
                      "so they are of no one step\n"),
            std::string::npos)
      << said;
}

// Else a run that is stopped at once would replace what a longer one has left.
TEST_F(Ending, BeforeTheFirstStepHasEndedNothingIsSaved) {
  in_step(1, [this]() -> Status {
    std::raise(SIGINT);
    std::raise(SIGINT);
    return cancelled();
  });

  const auto summary = run();

  ASSERT_TRUE(summary.has_value());
  EXPECT_TRUE(summary->interrupted);
  EXPECT_EQ(summary->steps, 0);
  EXPECT_FALSE(summary->loss.has_value());
  EXPECT_EQ(saved(), kNothing);
}

TEST_F(Ending, ASignalEndsAnEvaluationAndSavesTheWeightsOfItsStep) {
  job_.config.validation.freq = 2;
  engine_->on_evaluate = [](const FakeEngine::Asked&) {
    std::raise(SIGINT);
    StepResult result;
    result.tokens = 1;
    return result;
  };

  const auto summary = run();

  ASSERT_TRUE(summary.has_value());
  EXPECT_TRUE(summary->interrupted);
  EXPECT_EQ(record_.evaluated.size(), 1u);
  EXPECT_EQ(saved(), 2);
  ASSERT_EQ(metrics().size(), 2u);
  EXPECT_FALSE(metrics()[1].contains("held_out_loss")) << "a part of the rows is another figure";
}

TEST_F(Ending, ASecondSignalEndsTheBatchOfAnEvaluation) {
  engine_->on_evaluate = [this](const FakeEngine::Asked&) -> Expected<StepResult> {
    std::raise(SIGINT);
    std::raise(SIGINT);
    return fail(cancelled().error());
  };

  const auto summary = run();

  ASSERT_TRUE(summary.has_value());
  EXPECT_TRUE(summary->interrupted);
  EXPECT_EQ(saved(), 4);
}

TEST_F(Ending, AnErrorBeforeAnUpdateSavesTheWeightsOfTheLastStep) {
  in_step(3, []() -> Status { return fail(error("run.failed", "rank 1: boom")); });

  const auto summary = run();

  expect_error(summary, "run.failed",
               "note: the weights of step 2 are in '" + folder_.path("out") + "'");
  EXPECT_EQ(saved(), 2);
}

TEST_F(Ending, AnErrorAmongUpdatesSavesNothing) {
  in_step(3, [this]() -> Status {
    engine_->whole = false;
    return fail(error("run.failed", "rank 1: boom"));
  });

  expect_error(run(), "run.failed", "note: the weights were not saved: step 3 ended while");
  EXPECT_EQ(saved(), kNothing);
}

TEST_F(Ending, AnErrorAfterASignalIsAnError) {
  in_step(3, []() -> Status {
    std::raise(SIGINT);
    return fail(error("run.failed", "rank 1: boom"));
  });

  expect_error(run(), "run.failed", "boom");
  EXPECT_EQ(saved(), 2);
}

TEST_F(Ending, AnExceptionIsAnErrorLikeAnother) {
  in_step(3, []() -> Status { throw std::runtime_error("no such row"); });

  expect_error(run(), "run.exception", "no such row");
  EXPECT_EQ(saved(), 2);
}

TEST_F(Ending, AMetricsFileThatIsFullDoesNotLoseTheWeights) {
  job_.config.metrics.file = "/dev/full";

  expect_error(run(), "metrics.unwritable", "are in '" + folder_.path("out") + "'");
  EXPECT_EQ(saved(), 1);
}

TEST_F(Ending, AStepThatIsNotFiniteSavesNothing) {
  engine_->on_train = [](const FakeEngine::Asked& asked) {
    StepResult result;
    result.tokens = 1;
    result.finite = asked.step != 3;
    return result;
  };

  expect_error(run(), "run.non_finite",
               "the weights were not saved: training.non_finite is \"stop\"");
  EXPECT_EQ(saved(), kNothing);
}

TEST_F(Ending, AFolderThatCannotBeWrittenIsTriedOnceMoreBesideIt) {
  job_.config.checkpoint.last_save_path = folder_.write("out", "a file") + "/";
  folder_.write("out.retry", "taken");

  const auto summary = run();

  ASSERT_TRUE(summary.has_value());
  EXPECT_EQ(summary->weights, folder_.path("out.retry-2"));
  ASSERT_EQ(summary->problems.size(), 1u);
  EXPECT_NE(to_string(summary->problems)
                .find("note: the weights of step 4 are in '" + folder_.path("out.retry-2") + "'"),
            std::string::npos)
      << to_string(summary->problems);
  EXPECT_EQ(saved("out.retry-2"), 4);
}

TEST_F(Ending, AFolderThatWasRemovedIsMadeAgain) {
  fs::create_directories(folder_.path("gone/out"));
  job_.config.checkpoint.last_save_path = folder_.path("gone/out");
  in_step(2, [this]() -> Status {
    fs::remove_all(folder_.path("gone"));
    return {};
  });

  const auto summary = run();

  ASSERT_TRUE(summary.has_value());
  EXPECT_EQ(summary->weights, folder_.path("gone/out"));
  EXPECT_EQ(saved("gone/out"), 4);
}

TEST_F(Ending, AFolderThatBecameAFileIsTriedOnceMoreAfterAnErrorToo) {
  fs::create_directories(folder_.path("out"));
  in_step(2, [this]() -> Status {
    fs::remove_all(folder_.path("out"));
    folder_.write("out", "a file");
    return fail(error("run.failed", "rank 1: boom"));
  });

  const auto summary = run();

  expect_error(summary, "run.failed", "the weights of step 1 are in '" + folder_.path("out.retry"));
  EXPECT_EQ(summary.error().size(), 2u);
  EXPECT_EQ(saved("out.retry"), 1);
}

TEST_F(Ending, WhereNeitherFolderCanBeWrittenBothAreNamed) {
  job_.config.checkpoint.last_save_path = folder_.write("file", "") + "/out";

  const auto summary = run();

  ASSERT_TRUE(summary.has_value());
  EXPECT_EQ(summary->weights, "");
  ASSERT_EQ(summary->problems.size(), 2u);
  EXPECT_NE(to_string(summary->problems[0]).find(folder_.path("file/out")), std::string::npos);
  EXPECT_NE(to_string(summary->problems[1]).find(folder_.path("file/out.retry")),
            std::string::npos);
}

}  // namespace
}  // namespace piper

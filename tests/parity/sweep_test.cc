// Every plan computes one device's loss, gradients, norm and update (design section 8).
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/parity/harness.h"

namespace piper {
namespace {

using testing::Case;

// A longer sweep, for its own target.
bool is_large() {
  return std::getenv("PIPER_PARITY_LARGE") != nullptr;
}

VerifyReport verify(const Case& c, std::int64_t steps = 1, double break_scaling = 1) {
  const auto job = make_job(c);
  if (!job) {
    ADD_FAILURE() << to_string(c) << '\n' << to_string(job.error());
    return {};
  }
  VerifyOptions options;
  options.steps = steps;
  options.break_scaling = break_scaling;
  const auto report = verify_parity(*job, options, testing::uneven_batches(*job));
  if (!report) {
    ADD_FAILURE() << to_string(c) << '\n' << to_string(report.error());
    return {};
  }
  return *report;
}

// One step of SGD, which hides nothing, and two of AdamW with clipping.
void expect_parity(const std::string& dtype, const std::string& schedule) {
  for (const std::uint32_t pp : {1u, 2u, 4u}) {
    for (const std::uint32_t dp : is_large() ? std::vector{1u, 2u, 3u} : std::vector{1u, 2u}) {
      for (const std::uint32_t microbatches :
           is_large() ? std::vector{1u, 2u, 3u, 5u, 8u, 13u} : std::vector{1u, 3u, 8u}) {
        for (const bool tied : {false, true}) {
          Case c;
          c.pp = pp, c.dp = dp, c.microbatches = microbatches;
          c.schedule = schedule, c.dtype = dtype, c.tied = tied;
          const VerifyReport sgd = verify(c);
          EXPECT_TRUE(sgd.passed) << to_string(c) << '\n' << sgd.text;

          c.optimizer = "adamw", c.max_norm = 0.1;
          const VerifyReport adamw = verify(c, is_large() ? 5 : 2);
          EXPECT_TRUE(adamw.passed) << to_string(c) << '\n' << adamw.text;
        }
      }
    }
  }
}

TEST(Parity, HoldsInFloat64) {
  expect_parity("float64", "1f1b");
}

TEST(Parity, HoldsInFloat32) {
  expect_parity("float32", "1f1b");
}

TEST(Parity, HoldsInBfloat16) {
  expect_parity("bfloat16", "1f1b");
}

TEST(Parity, HoldsForGpipe) {
  expect_parity("float64", "gpipe");
}

// 8 rows over 3 micro-batches and 3 stages: the first two have 3 rows, the last 2, in every stage.
TEST(Parity, HoldsWhereMicrobatchesDifferInRows) {
  Case c;
  c.pp = 3, c.microbatches = 3, c.rows = 8;

  const VerifyReport report = verify(c);

  EXPECT_TRUE(report.passed) << report.text;
}

// The same rows cut in other ways give the same numbers.
TEST(Parity, HoldsForTheSameRowsCutInOtherWays) {
  for (const std::uint32_t dp : {1u, 2u}) {
    for (const std::uint32_t microbatches : {4u, 16u}) {
      Case c;
      c.dp = dp, c.microbatches = microbatches, c.rows = 32;
      const VerifyReport report = verify(c);
      EXPECT_TRUE(report.passed) << to_string(c) << '\n' << report.text;
    }
  }
}

// The norm that clips is of all stages together.
TEST(Parity, HoldsWhereGradientsAreClippedOverStages) {
  for (const bool tied : {false, true}) {
    Case c;
    c.pp = 4, c.dp = 2, c.microbatches = 3, c.tied = tied, c.max_norm = 1e-3;
    const VerifyReport report = verify(c);
    EXPECT_TRUE(report.passed) << to_string(c) << '\n' << report.text;
  }
}

// A frozen first stage, a frozen layer in the middle, one weight alone, everything but the head.
TEST(Parity, HoldsWhereParametersAreFrozen) {
  const std::vector<std::vector<std::string>> freezes = {
      {"model.embed_tokens.weight", "model.layers.0.*"},
      {"model.layers.1.*"},
      {"model.layers.2.mlp.up_proj.weight"},
      {"model.*"}};
  for (const auto& freeze : freezes) {
    for (const std::uint32_t pp : {1u, 2u, 4u}) {
      Case c;
      c.pp = pp, c.dp = 2, c.microbatches = 3, c.freeze = freeze;
      const VerifyReport report = verify(c);
      EXPECT_TRUE(report.passed) << to_string(c) << " freeze " << freeze.front() << '\n'
                                 << report.text;
    }
  }
}

// Groups with a learning rate and decay of their own are buckets of their own.
TEST(Parity, HoldsWithParameterGroups) {
  Case c;
  c.pp = 2, c.dp = 2, c.microbatches = 3, c.optimizer = "adamw";
  c.sections = {"[[optimizer.group]]\nparameters = [\"*norm*\", \"*embed*\"]\nweight_decay = 0.0",
                "[[optimizer.group]]\nparameters = [\"lm_head*\"]\nlr = 0.1",
                "[lr_scheduler]\nwarmup_steps = 2"};

  const VerifyReport report = verify(c, 3);

  EXPECT_TRUE(report.passed) << report.text;
}

// The oracle's own test: it must see a wrong scale, however small a layout hides it.
TEST(Parity, FailsWhereTheScalingIsBroken) {
  for (const std::string dtype : {"float64", "float32"}) {
    for (const double factor : {2.0, 0.5, 1.0 + 1e-4}) {
      Case c;
      c.pp = 2, c.dp = 2, c.microbatches = 3, c.dtype = dtype;

      const VerifyReport report = verify(c, 1, factor);

      EXPECT_FALSE(report.passed) << to_string(c) << " factor " << factor << '\n' << report.text;
      EXPECT_NE(report.text.find("parity with one device: not met"), std::string::npos);
    }
  }
}

TEST(Parity, FailsInBfloat16WhereTheScalingIsBroken) {
  Case c;
  c.pp = 2, c.dp = 2, c.microbatches = 3, c.dtype = "bfloat16";

  EXPECT_FALSE(verify(c, 1, 1.02).passed);
}

}  // namespace
}  // namespace piper

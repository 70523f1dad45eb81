// Settings of a job that have no effect, or less than they say.
#include <gtest/gtest.h>

#include "core/config/config.h"
#include "tests/core/config/job.h"

namespace piper {
namespace {

using testing::load;

// Without the places.
std::string remarks(const std::vector<std::string>& overrides,
                    const std::string& job = "[training]\nsteps = 10\n") {
  const auto config = load(job, overrides);
  if (!config) {
    return to_string(config.error());
  }
  std::string text;
  for (Diagnostic remark : config->remarks) {
    EXPECT_EQ(remark.severity, Severity::warning);
    EXPECT_TRUE(remark.where.known()) << remark.message;
    remark.where = {};
    text += to_string(remark) + '\n';
  }
  return text;
}

TEST(Remarks, SayWhereASettingWasGiven) {
  const testing::JobFile file("[optimizer]\nmomentum = 0.9\n");
  const auto config = load_config(file.path(), {"comm.init_timeout_seconds=5"});

  ASSERT_TRUE(config) << to_string(config.error());
  ASSERT_EQ(config->remarks.size(), 2U) << to_string(config->remarks);
  EXPECT_EQ(to_string(config->remarks[0].where), file.path() + ":2:12");
  EXPECT_EQ(to_string(config->remarks[1].where), "--comm.init_timeout_seconds=5");
}

TEST(Remarks, AreNotMadeOfASoundJobNorOfItsPrintedForm) {
  const auto config = load("[training]\nsteps = 10\n[model]\nlayers = 2\n",
                           {"lr_scheduler.warmup_steps=2", "lr_scheduler.decay_type=cosine",
                            "lr_scheduler.decay_ratio=0.8", "lr_scheduler.min_lr_factor=0.1",
                            "validation.freq=10", "metrics.log_freq=10"});
  ASSERT_TRUE(config) << to_string(config.error());

  EXPECT_TRUE(config->remarks.empty()) << to_string(config->remarks);
  const auto again = load(print(*config));
  ASSERT_TRUE(again) << to_string(again.error());
  EXPECT_TRUE(again->remarks.empty()) << to_string(again->remarks);
}

TEST(Remarks, TellThatTheWarmUpIsCut) {
  EXPECT_EQ(remarks({"training.steps=4", "lr_scheduler.warmup_steps=2000"}),
            "warning: lr_scheduler.warmup_steps: expected at most training.steps = 4, got 2000: "
            "the warm-up is cut to 4 steps [config.less_effect]\n");
  EXPECT_EQ(remarks({"lr_scheduler.warmup_steps=1"}),
            "warning: lr_scheduler.warmup_steps has no effect: the learning rate rises to its full "
            "height at the last step of a warm-up, here the first of all [config.no_effect]\n");
  EXPECT_EQ(remarks({"lr_scheduler.warmup_steps=10"}), "");
}

TEST(Remarks, TellThatTheDecayIsCut) {
  EXPECT_EQ(remarks({"lr_scheduler.warmup_steps=5", "lr_scheduler.decay_ratio=0.8",
                     "lr_scheduler.decay_type=linear"}),
            "warning: lr_scheduler.decay_ratio: expected at most training.steps = 10 for warm-up "
            "and decay, got 5 + 8: the decay is cut to 5 steps [config.less_effect]\n");
  EXPECT_EQ(remarks({"lr_scheduler.warmup_steps=5", "lr_scheduler.decay_ratio=0.5",
                     "lr_scheduler.decay_type=linear"}),
            "");
}

TEST(Remarks, TellThatADecayOfOneStepIsNotSeen) {
  EXPECT_EQ(remarks({"lr_scheduler.decay_ratio=0.1", "lr_scheduler.decay_type=sqrt"}),
            "warning: lr_scheduler.decay_type has no effect: the decay has 1 step of "
            "training.steps = 10, and reaches its end one step after the last "
            "[config.no_effect]\n");
  EXPECT_EQ(remarks({"lr_scheduler.decay_ratio=0.2", "lr_scheduler.decay_type=sqrt"}), "");
}

TEST(Remarks, TellThatKeysOfADecayNeedOne) {
  EXPECT_EQ(remarks({"lr_scheduler.decay_ratio=0.5", "lr_scheduler.min_lr_factor=0.1"}),
            "warning: lr_scheduler.decay_ratio has no effect: lr_scheduler.decay_type is \"none\" "
            "[config.no_effect]\n"
            "warning: lr_scheduler.min_lr_factor has no effect: lr_scheduler.decay_type is "
            "\"none\" [config.no_effect]\n");
}

TEST(Remarks, TellWhichKeysAreOfTheOtherOptimizer) {
  EXPECT_EQ(remarks({"optimizer.momentum=0.9"}),
            "warning: optimizer.momentum has no effect: it is sgd's, and optimizer.name is "
            "\"adamw\" (beta1 decays its first moment) [config.no_effect]\n");
  const std::string of_sgd = remarks(
      {"optimizer.name=sgd", "optimizer.beta1=0.5", "optimizer.beta2=0.5", "optimizer.eps=0.1"});
  for (const char* key : {"beta1", "beta2", "eps"}) {
    EXPECT_NE(of_sgd.find("warning: optimizer." + std::string(key) +
                          " has no effect: it is adamw's, and optimizer.name is \"sgd\""),
              std::string::npos)
        << of_sgd;
  }
}

TEST(Remarks, TellThatNothingIsHeldOut) {
  EXPECT_EQ(remarks({"validation.fraction=0", "validation.freq=2", "validation.steps=3"}),
            "warning: validation.freq has no effect: validation.fraction = 0 holds nothing out "
            "[config.no_effect]\n"
            "warning: validation.steps has no effect: validation.fraction = 0 holds nothing out "
            "[config.no_effect]\n");
}

TEST(Remarks, TellThatAFrequencyIsBeyondTheSteps) {
  EXPECT_EQ(remarks({"validation.freq=11", "metrics.log_freq=12"}),
            "warning: validation.freq: expected at most training.steps = 10, got 11: there is one "
            "held-out loss, at the end [config.less_effect]\n"
            "warning: metrics.log_freq: expected at most training.steps = 10, got 12: the first "
            "and the last step are printed [config.less_effect]\n");
}

TEST(Remarks, TellWhatOneRankDoesNot) {
  const std::vector<std::string> keys = {"comm.train_timeout_seconds=5",
                                         "emulate.link_latency_us=5", "emulate.link_gbps=5"};
  const std::string alone = remarks(keys);

  for (const char* key :
       {"comm.train_timeout_seconds", "emulate.link_latency_us", "emulate.link_gbps"}) {
    EXPECT_NE(alone.find(key + std::string(" has no effect: a job of one rank")), std::string::npos)
        << alone;
  }
  EXPECT_EQ(remarks(keys, "[mesh]\npp = 2\n"), "");
}

TEST(Remarks, TellThatAGraphIsOfATimeBefore) {
  EXPECT_EQ(remarks({}, "[model]\ngraph = \"m.graph\"\nlayers = 8\n[training]\nseq_len = 64\n"),
            "warning: model.layers has no effect: model.graph is of one captured before, with the "
            "value of then [config.no_effect]\n");
}

TEST(Remarks, TellThatAFilterNeedsAMode) {
  EXPECT_EQ(remarks({"activation_checkpoint.filter={ layer = 0 }"}),
            "warning: activation_checkpoint.filter has no effect: activation_checkpoint.mode is "
            "\"none\" [config.no_effect]\n");
}

TEST(Remarks, TellThatAGroupSetsNothing) {
  EXPECT_EQ(remarks({}, "[[optimizer.group]]\nparameters = \"*norm*\"\n"),
            "warning: [[optimizer.group]] without lr and weight_decay: its parameters are trained "
            "as [optimizer] says [config.no_effect]\n");
}

TEST(Remarks, TellThatEmulatedComputationsTeachNothing) {
  EXPECT_EQ(remarks({"emulate.forward_ms=1", "checkpoint.last_save_path=out"}),
            "warning: checkpoint.last_save_path: [emulate] computes nothing, so the weights that "
            "are saved have learnt nothing [config.less_effect]\n");
}

}  // namespace
}  // namespace piper

// Names in another spelling, as TorchTitan's.
#include "core/config/spelling.h"

#include <gtest/gtest.h>

#include "core/config/schema.h"
#include "tests/core/config/job.h"

namespace piper {
namespace {

TEST(Spelling, KnowsANameByItsLettersAndDigits) {
  const std::vector<std::string> known = {"sgd", "adamw", "looped_bfs", "1f1b"};

  EXPECT_EQ(known_spelling("AdamW", known), "adamw");
  EXPECT_EQ(known_spelling("SGD", known), "sgd");
  EXPECT_EQ(known_spelling("LoopedBFS", known), "looped_bfs");
  EXPECT_EQ(known_spelling("1F1B", known), "1f1b");
  EXPECT_EQ(known_spelling("looped_bfs", known), "looped_bfs");
  EXPECT_EQ(known_spelling("Adam", known), "");
  EXPECT_EQ(known_spelling("", known), "");
}

TEST(Spelling, IsTakenForEveryChoiceAndPrintedAsOurs) {
  const auto config = testing::load(
      "[optimizer]\nname = \"SGD\"\n[lr_scheduler]\ndecay_type = \"Cosine\"\n"
      "[training]\ndtype = \"BFloat16\"\nnon_finite = \"Skip\"\n",
      {"activation_checkpoint.mode=Full"});

  ASSERT_TRUE(config) << to_string(config.error());
  EXPECT_EQ(config->optimizer.name, OptimizerName::sgd);
  EXPECT_EQ(config->lr_scheduler.decay_type, Decay::cosine);
  EXPECT_EQ(config->training.dtype, DType::bfloat16);
  EXPECT_EQ(config->training.non_finite, NonFinite::skip);
  EXPECT_EQ(config->activation_checkpoint.mode, ActivationCheckpointConfig::Mode::full);
  EXPECT_NE(print(*config).find("\nname = \"sgd\"\n"), std::string::npos) << print(*config);
}

TEST(Spelling, KeepsTheChoicesOfAKeyApart) {
  for (const Key& key : schema()) {
    for (std::size_t i = 0; i < key.choices.size(); ++i) {
      const std::vector<std::string> before(key.choices.begin(),
                                            key.choices.begin() + static_cast<std::ptrdiff_t>(i));
      EXPECT_EQ(known_spelling(key.choices[i], before), "") << key.path();
    }
  }
}

TEST(Spelling, RefusesAnotherOptimizerAndANameThatIsForLater) {
  EXPECT_EQ(testing::errors("[optimizer]\nname = \"Adam\"\n[device]\ntype = \"CUDA\"\n"),
            "job.toml:2:8: error: optimizer.name: expected one of \"sgd\", \"adamw\", got \"Adam\" "
            "(did you mean 'adamw'?) [config.choice]\n"
            "job.toml:4:8: error: device.type: \"CUDA\" is not supported by this version "
            "(expected \"cpu\") [config.unsupported]");
}

}  // namespace
}  // namespace piper

#include "runtime/models/qwen3_config.h"

#include <gtest/gtest.h>

namespace piper {
namespace {

Config with_flavor(const std::string& flavor) {
  Config config;
  config.model.flavor = flavor;
  return config;
}

// The only mistake of a configuration, as `code: message`.
std::string mistake(const Config& config) {
  const Expected<Qwen3Config> resolved = resolve_qwen3(config);
  if (resolved) {
    return "no mistake";
  }
  EXPECT_EQ(resolved.error().size(), 1u) << to_string(resolved.error());
  return resolved.error()[0].code + ": " + resolved.error()[0].message;
}

// Hugging Face gives 751,632,384 for 0.6b where it counts the tied embedding twice: 596,049,920 +
// 151,936 * 1024.
TEST(Qwen3Config, FlavorsHaveThePublishedNumbersOfParameters) {
  EXPECT_EQ(resolve_qwen3(with_flavor("0.6b"))->parameters(), 596'049'920);
  EXPECT_EQ(resolve_qwen3(with_flavor("1.7b"))->parameters(), 1'720'574'976);
  EXPECT_EQ(resolve_qwen3(with_flavor("4b"))->parameters(), 4'022'468'096);
  EXPECT_EQ(resolve_qwen3(with_flavor("8b"))->parameters(), 8'190'735'360);
  EXPECT_EQ(resolve_qwen3(with_flavor("8B"))->parameters(), 8'190'735'360);
}

TEST(Qwen3Config, DebugIsBelowAMillionParametersAndReadsBytes) {
  const Qwen3Config debug = *resolve_qwen3(with_flavor("debug"));

  EXPECT_LT(debug.parameters(), 1'000'000);
  EXPECT_GE(debug.vocab, 257);
}

TEST(Qwen3Config, KeysWinOverTheFlavor) {
  Config config = with_flavor("0.6b");
  config.model.layers = 3;
  config.model.tied = false;

  const Qwen3Config resolved = *resolve_qwen3(config);

  EXPECT_EQ(resolved.layers, 3);
  EXPECT_FALSE(resolved.tied);
  EXPECT_EQ(resolved.dim, 1024);
}

TEST(Qwen3Config, DimAloneGivesHeadsOf64AndEightThirdsOfAFeedForward) {
  Config config;
  config.model.dim = 256;

  const Qwen3Config resolved = *resolve_qwen3(config);

  EXPECT_EQ(resolved.heads, 4);
  EXPECT_EQ(resolved.kv_heads, 4);
  EXPECT_EQ(resolved.head_dim, 64);
  EXPECT_EQ(resolved.ffn, 688);
}

TEST(Qwen3Config, RefusesAnUnknownFlavorAndNamesTheNearest) {
  EXPECT_EQ(mistake(with_flavor("debgu")),
            "model.flavor: unknown flavor 'debgu' (did you mean 'debug'?)");
}

TEST(Qwen3Config, RefusesHeadsThatKvHeadsDoNotDivideWhereTheyAreWritten) {
  Config config = with_flavor("debug");
  config.model.heads = 3;
  config.locations["model.heads"] = {"job.toml", 4, 9};

  const Expected<Qwen3Config> resolved = resolve_qwen3(config);

  ASSERT_FALSE(resolved);
  EXPECT_EQ(to_string(resolved.error()),
            "job.toml:4:9: error: heads: expected a multiple of kv_heads = 2, got 3 [model.heads]");
}

TEST(Qwen3Config, RefusesAnOddHeadDim) {
  Config config = with_flavor("debug");
  config.model.head_dim = 31;
  EXPECT_EQ(mistake(config), "model.head_dim: head_dim: expected an even number, got 31");
}

TEST(Qwen3Config, RefusesAVocabularyThatTextDoesNotFitIn) {
  Config config = with_flavor("debug");
  config.model.vocab = 256;
  EXPECT_EQ(mistake(config),
            "model.vocab: vocab: expected at least 257 for text (256 bytes and an end of "
            "document), got 256");
  config.training.dataset = Dataset::jsonl;
  EXPECT_EQ(mistake(config), "no mistake");
}

TEST(Qwen3Config, ReportsEveryBrokenRule) {
  Config config = with_flavor("debug");
  config.model.layers = -1;
  config.model.norm_eps = -1;
  EXPECT_EQ(resolve_qwen3(config).error().size(), 2u);
}

}  // namespace
}  // namespace piper

// What a [[strategy]] table may say, as a table of mistakes.
#include "core/plugin/options.h"

#include <gtest/gtest.h>

#include "core/plugin/manifest.h"

namespace piper {
namespace {

constexpr std::string_view kManifest = R"(
id = "zero"
version = "1.0.0"
abi = "0.1"
summary = "a test"
[[option]]
name = "stage"
type = "i64"
min = 0
max = 3
default = 1
help = "how much is sharded"
[[option]]
name = "reduce"
type = "enum"
values = ["chain", "step"]
spellings = { AfterEachChain = "chain" }
default = "chain"
help = "when"
[[option]]
name = "ratio"
type = "f64"
min = 0
help = "a share"
[[option]]
name = "bounds"
type = "list of i64"
min = 0
default = [1, 2]
help = "where"
[[option]]
name = "names"
type = "list of str"
help = "whom"
[[option]]
name = "quiet"
type = "bool"
default = false
help = "say less"
[[option]]
name = "path"
type = "str"
required = true
help = "whence"
)";

Manifest manifest() {
  return *parse_manifest(kManifest, "zero.toml");
}

OptionValue value(decltype(OptionValue::value) held, std::uint32_t line = 4) {
  return {std::move(held), {"job.toml", line, 9}};
}

using Options = std::vector<std::pair<std::string, OptionValue>>;

std::string errors(Options options) {
  options.emplace_back("path", value(std::string("x")));
  const auto resolved =
      resolve_options(manifest(), StrategyConfig{"zero", "zero", options, {"job.toml", 3, 1}});
  return resolved ? "" : to_string(resolved.error());
}

struct Case {
  const char* name;
  OptionValue value;
  const char* message;
};

void PrintTo(const Case& item, std::ostream* out) {
  *out << item.name;
}

class Mistake : public testing::TestWithParam<Case> {};

TEST_P(Mistake, IsToldWithItsPlace) {
  EXPECT_EQ(errors({{GetParam().name, GetParam().value}}), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Options, Mistake,
    testing::Values(
        Case{"stag", value(std::int64_t{1}),
             "job.toml:4:9: error: strategy 'zero' has no option 'stag' (did you mean 'stage'?) "
             "[option.unknown_key]"},
        Case{"stage", value(std::string("2")),
             "job.toml:4:9: error: zero.stage: expected an integer, got \"2\" [option.type]"},
        Case{"stage", value(2.0),
             "job.toml:4:9: error: zero.stage: expected an integer, got 2.0 [option.type]"},
        Case{"stage", value(std::int64_t{4}),
             "job.toml:4:9: error: zero.stage: expected an integer of at least 0 and at most 3, "
             "got 4 [option.range]"},
        Case{"stage", value(std::int64_t{-1}),
             "job.toml:4:9: error: zero.stage: expected an integer of at least 0 and at most 3, "
             "got -1 [option.range]"},
        Case{"stage", value(std::vector<OptionValue>{}),
             "job.toml:4:9: error: zero.stage: expected an integer, got [] [option.type]"},
        Case{"reduce", value(std::string("chian")),
             "job.toml:4:9: error: zero.reduce: expected one of \"chain\", \"step\", got \"chian\" "
             "(did you mean 'chain'?) "
             "[option.choice]"},
        Case{"reduce", value(true),
             "job.toml:4:9: error: zero.reduce: expected one of \"chain\", \"step\", got true "
             "[option.type]"},
        Case{"ratio", value(-0.5),
             "job.toml:4:9: error: zero.ratio: expected a number of at least 0.0, got -0.5 "
             "[option.range]"},
        Case{"ratio", value(std::numeric_limits<double>::quiet_NaN()),
             "job.toml:4:9: error: zero.ratio: expected a finite number, got nan [option.range]"},
        Case{"bounds", value(std::int64_t{1}),
             "job.toml:4:9: error: zero.bounds: expected a list of integers, got 1 [option.type]"},
        Case{"bounds",
             value(std::vector<OptionValue>{value(std::int64_t{3}), value(std::int64_t{-3}, 5)}),
             "job.toml:5:9: error: zero.bounds[1]: expected an integer of at least 0, got -3 "
             "[option.range]"},
        Case{"names", value(std::vector<OptionValue>{value(std::int64_t{3}, 6)}),
             "job.toml:6:9: error: zero.names[0]: expected a list of texts, got 3 [option.type]"},
        Case{"quiet", value(std::int64_t{1}),
             "job.toml:4:9: error: zero.quiet: expected true or false, got 1 [option.type]"}));

TEST(Options, TellEveryMistakeAtOnce) {
  const std::string text =
      errors({{"stage", value(std::int64_t{9})}, {"nonsense", value(true, 5)}});

  EXPECT_NE(text.find("[option.range]"), std::string::npos) << text;
  EXPECT_NE(text.find("[option.unknown_key]"), std::string::npos) << text;
}

TEST(Options, MissARequiredOneAtTheTable) {
  const auto resolved =
      resolve_options(manifest(), StrategyConfig{"zero", "zero", {}, {"job.toml", 3, 1}});

  EXPECT_EQ(
      to_string(resolved.error()),
      "job.toml:3:1: error: strategy 'zero' needs the option 'path': a text [option.required]");
}

TEST(Options, TakeAnIntegerWhereANumberIsWanted) {
  EXPECT_EQ(errors({{"ratio", value(std::int64_t{1})}}), "");
}

TEST(Options, TakeAValueInAnotherSystemsSpelling) {
  for (const auto& [written, meant] :
       {std::pair("Step", "step"), {"after_each_chain", "chain"}, {"AfterEachChain", "chain"}}) {
    const Options given{{"path", value(std::string("x"))}, {"reduce", value(std::string(written))}};

    const auto options =
        resolve_options(manifest(), StrategyConfig{"zero", "zero", given, {"job.toml", 3, 1}});

    ASSERT_TRUE(options) << written;
    EXPECT_EQ(options->at(1).texts, (std::vector<std::string>{meant})) << written;
  }
}

TEST(Options, AreTypedWithDefaultsAndPlaces) {
  const Options given{{"path", value(std::string("x"))}, {"stage", value(std::int64_t{3}, 6)}};

  const auto options =
      *resolve_options(manifest(), StrategyConfig{"zero", "zero", given, {"job.toml", 3, 1}});

  ASSERT_EQ(options.size(), 7U);
  EXPECT_EQ(options[0].state, Option::State::written);
  EXPECT_EQ(options[0].integers, (std::vector<std::int64_t>{3}));
  EXPECT_EQ(options[0].where.line, 6U);
  EXPECT_EQ(options[1].state, Option::State::fallback);
  EXPECT_EQ(options[1].texts, (std::vector<std::string>{"chain"}));
  EXPECT_EQ(options[1].where.line, 3U);
  EXPECT_EQ(options[2].state, Option::State::absent);
  EXPECT_EQ(options[3].integers, (std::vector<std::int64_t>{1, 2}));
}

}  // namespace
}  // namespace piper

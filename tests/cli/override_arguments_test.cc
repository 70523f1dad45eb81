#include "core/cli/override_arguments.h"

#include <gtest/gtest.h>

namespace piper {
namespace {

using Texts = std::vector<std::string>;

struct Taken {
  Texts overrides, rest;
  bool operator==(const Taken&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Taken& taken) {
  for (const std::string& text : taken.overrides) {
    out << '<' << text << "> ";
  }
  out << "| ";
  for (const std::string& text : taken.rest) {
    out << '<' << text << "> ";
  }
  return out;
}

Taken take(Texts arguments) {
  Texts overrides = take_overrides(arguments);
  return {std::move(overrides), std::move(arguments)};
}

TEST(OverrideArguments, HaveTheirValueAfterAnEqualsSignOrASpace) {
  const Taken expected{{"training.steps=3"}, {"train", "job.toml", "--no-progress"}};

  EXPECT_EQ(take({"train", "job.toml", "--training.steps=3", "--no-progress"}), expected);
  EXPECT_EQ(take({"train", "job.toml", "--training.steps", "3", "--no-progress"}), expected);
  EXPECT_EQ(take({"train", "--training.steps", "3", "job.toml", "--no-progress"}), expected);
}

TEST(OverrideArguments, TakeNumbersBelowZeroListsAndWhatAStrategyDeclares) {
  EXPECT_EQ(take({"plan", "job.toml", "--optimizer.lr", "-1", "--mesh.order", "[\"dp\"]",
                  "--strategy.zero.stage", "3"}),
            (Taken{{"optimizer.lr=-1", "mesh.order=[\"dp\"]", "strategy.zero.stage=3"},
                   {"plan", "job.toml"}}));
}

TEST(OverrideArguments, TakeNoOptionAsAValue) {
  EXPECT_EQ(take({"train", "job.toml", "--training.steps", "--no-progress"}),
            (Taken{{"training.steps"}, {"train", "job.toml", "--no-progress"}}));
  EXPECT_EQ(take({"capture", "job.toml", "--training.seq_len", "-o", "out.graph"}),
            (Taken{{"training.seq_len"}, {"capture", "job.toml", "-o", "out.graph"}}));
  EXPECT_EQ(take({"train", "job.toml", "--training.steps"}),
            (Taken{{"training.steps"}, {"train", "job.toml"}}));
}

TEST(OverrideArguments, LeaveTheJobFileAlone) {
  const Taken steps{{"training.steps"}, {"train", "job.toml"}};

  EXPECT_EQ(take({"train", "--training.steps", "job.toml"}), steps);
  EXPECT_EQ(take({"train", "--metrics.file", "job.toml"}),
            (Taken{{"metrics.file"}, {"train", "job.toml"}}));
  EXPECT_EQ(take({"plan", "--cost.machine", "machine.toml", "job.toml"}),
            (Taken{{"cost.machine=machine.toml"}, {"plan", "job.toml"}}));
  EXPECT_EQ(take({"plan", "job.toml", "--cost.machine", "machine.toml"}),
            (Taken{{"cost.machine=machine.toml"}, {"plan", "job.toml"}}));
}

TEST(OverrideArguments, OfATruthAreTrueWhereTheyStandAlone) {
  const auto tied = [](const std::string& value) {
    return Taken{{"model.tied=" + value}, {"check", "job.toml"}};
  };

  EXPECT_EQ(take({"check", "job.toml", "--model.tied"}), tied("true"));
  EXPECT_EQ(take({"check", "--model.tied", "job.toml"}), tied("true"));
  EXPECT_EQ(take({"check", "--model.tied", "false", "job.toml"}), tied("false"));
  EXPECT_EQ(take({"check", "--model.tied=false", "job.toml"}), tied("false"));
}

}  // namespace
}  // namespace piper

// The plugin through the host, as a job runs it.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "core/plugin/host.h"
#include "tests/support/toy_model.h"

namespace piper {
namespace {

const Location kWhere{"job.toml", 7, 1};

struct JobShape {
  std::uint32_t pp = 1, dp = 1, microbatches = 1;
  std::vector<std::pair<std::string, OptionValue>> options;
};

Config job(const JobShape& shape) {
  Config config = test::toy_config(shape.pp, shape.dp, shape.microbatches);
  config.strategies = {{"interleaved1f1b", "interleaved1f1b", shape.options, kWhere}};
  config.locations["mesh.pp"] = {"job.toml", 2, 6};
  return config;
}

OptionValue text(const char* value) {
  return {std::string(value), {"job.toml", 9, 12}};
}

OptionValue boundaries(const std::vector<std::int64_t>& layers) {
  std::vector<OptionValue> items;
  for (const std::int64_t layer : layers) {
    items.push_back({layer, {"job.toml", 9, static_cast<std::uint32_t>(15 + 3 * items.size())}});
  }
  return {items, {"job.toml", 9, 14}};
}

Expected<std::vector<Proposal>> run(const JobShape& shape, const ModelGraph& model) {
  return propose(job(shape), model, SearchPath{{PIPER_PLUGIN_DIR}, false});
}

std::string errors(const JobShape& shape, const ModelGraph& model) {
  const auto proposals = run(shape, model);
  return proposals ? "" : to_string(proposals.error());
}

std::string print(const Proposal& proposal) {
  std::string lines;
  for (const Directive& directive : proposal.directives) {
    const std::string line = to_string(directive);
    lines += line.substr(0, line.find("   #")) + "\n";
  }
  return lines;
}

// The chains, as the tables write them: `0F0`.
std::vector<std::vector<std::string>> chains(const Proposal& proposal) {
  std::vector<std::vector<std::string>> rows;
  for (const Directive& directive : proposal.directives) {
    if (const auto* chain = std::get_if<OrderChainDirective>(&directive.what)) {
      rows.emplace_back();
      for (const Action& action : chain->actions) {
        rows.back().push_back(std::to_string(action.stage) +
                              (action.pass == Pass::forward ? "F" : "B") +
                              std::to_string(action.microbatch));
      }
    }
  }
  return rows;
}

// PyTorch's wording of the same order, for numbers of micro-batches that it refuses too: min(M, R -
// r) forwards, then one backward and one forward in turn as long as there are forwards, then
// backwards.
TEST(Interleaved1f1b, TakesAnyNumberOfMicrobatches) {
  for (std::uint32_t stages = 1; stages <= 6; ++stages) {
    for (std::uint32_t m = 1; m <= 9; ++m) {
      const auto rows = chains(run({stages, 1, m, {}}, test::toy_model({6}))->at(0));
      ASSERT_EQ(rows.size(), stages);
      for (std::uint32_t r = 0; r < stages; ++r) {
        std::vector<std::string> expected;
        const auto add = [&](const char* pass, std::uint32_t number) {
          expected.push_back(std::to_string(r) + pass + std::to_string(number));
        };
        std::uint32_t forward = 0;
        while (forward < std::min(m, stages - r)) {
          add("F", forward++);
        }
        for (std::uint32_t backward = 0; backward < m; ++backward) {
          add("B", backward);
          if (forward < m) {
            add("F", forward++);
          }
        }
        EXPECT_EQ(rows[r], expected) << stages << " " << m << " " << r;
      }
    }
  }
}

TEST(Interleaved1f1b, TagsPlacesAndOrdersEachStage) {
  const auto proposals = run({2, 2, 2, {}}, test::toy_model({4}));

  ASSERT_TRUE(proposals) << to_string(proposals.error());
  EXPECT_EQ(print(proposals->at(0)),
            "tag {REGION=[0, 1, 2]} PP=0\n"
            "tag {REGION=[3, 4, 5]} PP=1\n"
            "place {PP=0} ranks=[0, 1] stream=compute\n"
            "place {PP=1} ranks=[2, 3] stream=compute\n"
            "order_chain ranks=[0, 1] 0F0 0F1 0B0 0B1\n"
            "order_chain ranks=[2, 3] 1F0 1B0 1F1 1B1\n");
}

TEST(Interleaved1f1b, ClaimsItsAxisAndTheOrder) {
  const Proposal proposal = run({2, 1, 2, {}}, test::toy_model({4}))->at(0);

  ASSERT_EQ(proposal.claims.size(), 2U);
  EXPECT_EQ(proposal.claims[0].kind, Claim::Kind::axis);
  EXPECT_EQ(proposal.claims[0].name, "pp");
  EXPECT_EQ(proposal.claims[1].kind, Claim::Kind::order);
  EXPECT_EQ(proposal.from.plugin, "interleaved1f1b");
  EXPECT_EQ(proposal.directives[0].from.where, kWhere);
}

TEST(Interleaved1f1b, RunsOnOneStage) {
  EXPECT_EQ(print(run({1, 1, 1, {}}, test::toy_model({1}))->at(0)),
            "tag {REGION=[0, 1, 2]} PP=0\n"
            "place {PP=0} ranks=[0] stream=compute\n"
            "order_chain ranks=[0] 0F0 0B0\n");
}

TEST(Interleaved1f1b, CutsAModelWithoutLayersBetweenItsRegions) {
  ModelGraph model = test::toy_model({2});
  for (Region& region : model.regions) {
    region.tags.clear();
  }

  const std::string lines = print(run({4, 1, 1, {}}, model)->at(0));

  EXPECT_EQ(lines.substr(0, lines.find('\n')), "tag {REGION=[0]} PP=0");
}

TEST(Interleaved1f1b, CutsWhereTheJobSays) {
  const std::string lines =
      print(run({2, 1, 1, {{"boundaries", boundaries({0, 3})}}}, test::toy_model({4}))->at(0));

  EXPECT_NE(lines.find("tag {REGION=[0, 1, 2, 3]} PP=0\n"), std::string::npos) << lines;
  EXPECT_NE(lines.find("tag {REGION=[4, 5]} PP=1\n"), std::string::npos) << lines;
}

// The first layer takes as long as the other three.
TEST(Interleaved1f1b, CutsWhereTheCostModelIsBalanced) {
  const std::string file = testing::TempDir() + "/interleaved1f1b_costs.toml";
  std::ofstream(file) << "[[cost]]\nop = \"forward\"\nregions = \"0..1\"\nus = 30\n"
                         "[[cost]]\nop = \"forward\"\nregions = \"2..5\"\nus = 30\n"
                         "[[cost]]\nop = \"backward\"\nregions = \"0..5\"\nus = 6\n";
  Config config = job({2, 1, 1, {}});
  config.cost.model = "measured";
  config.cost.file = file;

  const auto proposals =
      propose(config, test::toy_model({4}), SearchPath{{PIPER_PLUGIN_DIR}, false});

  ASSERT_TRUE(proposals) << to_string(proposals.error());
  const std::string lines = print(proposals->at(0));
  EXPECT_NE(lines.find("tag {REGION=[0, 1]} PP=0\n"), std::string::npos) << lines;
}

TEST(Interleaved1f1b, RefusesMoreStagesThanLayersAtTheMesh) {
  EXPECT_EQ(errors({3, 1, 1, {}}, test::toy_model({2})),
            "job.toml:2:6: error: interleaved1f1b: expected at most 2 stages, one a layer of the "
            "model, got pp = 3 "
            "[interleaved1f1b.stages]");
}

TEST(Interleaved1f1b, RefusesBoundariesThatDoNotFit) {
  const auto with = [](const std::vector<std::int64_t>& layers) {
    return errors({2, 1, 1, {{"boundaries", boundaries(layers)}}}, test::toy_model({4}));
  };

  EXPECT_EQ(with({0}),
            "job.toml:9:15: error: interleaved1f1b: expected one boundary a stage, 2 in all, got 1 "
            "[interleaved1f1b.boundaries]");
  EXPECT_EQ(with({1, 2}),
            "job.toml:9:15: error: interleaved1f1b: expected the first layer, 0, got 1 "
            "[interleaved1f1b.boundaries]");
  EXPECT_EQ(with({0, 0}),
            "job.toml:9:18: error: interleaved1f1b: expected a layer after 0, got 0 "
            "[interleaved1f1b.boundaries]");
  EXPECT_EQ(with({0, 4}),
            "job.toml:9:18: error: interleaved1f1b: expected a layer after 0, got 4 "
            "[interleaved1f1b.boundaries]");
}

TEST(Interleaved1f1b, RefusesAnUnknownScheduleWithTheNearestName) {
  EXPECT_EQ(errors({1, 1, 1, {{"schedule", text("1f1d")}}}, test::toy_model({2})),
            "job.toml:9:12: error: interleaved1f1b.schedule: expected one of \"1f1b\", \"gpipe\", "
            "\"looped_bfs\", \"interleaved\", got \"1f1d\" (did you mean '1f1b'?) "
            "[option.choice]");
}

TEST(Interleaved1f1b, IsUsedOnceInAJob) {
  Config config = job({2, 1, 1, {}});
  config.strategies.push_back({"again", "interleaved1f1b", {}, {"job.toml", 12, 1}});

  const Status status = check_strategies(config, SearchPath{{PIPER_PLUGIN_DIR}, false});

  ASSERT_FALSE(status);
  EXPECT_EQ(to_string(status.error()[0]),
            "job.toml:7:1: error: plugin 'interleaved1f1b' conflicts with 'pipeline': a model is "
            "cut into one pipeline "
            "[plugin.conflict]\njob.toml:12:1: note: which 'interleaved1f1b' provides");
}

TEST(Interleaved1f1b, ProposesTheSameTwice) {
  const ModelGraph model = test::toy_model({5});

  EXPECT_EQ(print(run({4, 2, 7, {}}, model)->at(0)), print(run({4, 2, 7, {}}, model)->at(0)));
}

}  // namespace
}  // namespace piper

// Independent branches of a model stay independent: the example with two towers that meet in its
// last region, placed on ranks of their own.
#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "core/lower/dag_text.h"
#include "core/lower/edge_values.h"
#include "core/pipeline.h"
#include "tests/support/toy_model.h"

namespace piper {
namespace {

constexpr std::uint32_t kMicrobatches = 3;

ModelGraph two_tower() {
  std::ifstream file(PIPER_SOURCE_DIR "/tests/data/graphs/two_tower.graph");
  std::stringstream text;
  text << file.rdbuf();
  Expected<ModelGraph> model = parse_model_graph(text.str(), "two_tower.graph");
  PIPER_CHECK(model.has_value(), "a graph of the tests that is none");
  return *std::move(model);
}

// Text on rank 0, features on rank 1, where they meet on rank 2.
Proposal towers_apart() {
  Proposal proposal;
  proposal.from = {"towers", {"job.toml", 3, 1}};
  proposal.claims = {{Claim::Kind::axis, "pp", proposal.from}};
  std::uint32_t rank = 0;
  for (const char* tower : {"text", "features", "join"}) {
    const Filter filter{{{tower, Condition::Kind::present, {}}}, {}};
    proposal.directives.push_back({TagDirective{filter, "PP", rank}, proposal.from});
    proposal.directives.push_back({PlaceDirective{filter, {{rank}}, "compute"}, proposal.from});
    ++rank;
  }
  return proposal;
}

struct Lowered {
  ModelGraph model;
  std::optional<Dag> dag;
  Plans plans;
};

Lowered lowered() {
  Lowered out;
  Expected<Plans> plans = plan(test::toy_config(3, 1, kMicrobatches), two_tower(), {towers_apart()},
                               [&](const Phase& phase) {
                                 const auto* dag = std::get_if<const Dag*>(&phase.value);
                                 if (dag != nullptr && !out.dag) {
                                   out.model = phase.model;
                                   out.dag = **dag;
                                 }
                               });
  PIPER_CHECK(plans.has_value(), "towers that cannot be planned");
  out.plans = *std::move(plans);
  return out;
}

NodeId node_called(const Lowered& in, const std::string& name) {
  for (std::uint32_t n = 0; n < in.dag->nodes.size(); ++n) {
    if (describe(*in.dag, in.model, NodeId{n}) == name) {
      return NodeId{n};
    }
  }
  PIPER_CHECK(false, "no node " + name + " in\n" + print(*in.dag, in.model));
}

// By NodeId: what is after `from`, over edges and messages; with `data`, over those alone that
// carry something.
std::vector<bool> after(const Lowered& in, NodeId from, bool data) {
  const EdgeValues values(*in.dag, in.model);
  std::vector<std::vector<NodeId>> next(in.dag->nodes.size());
  for (const Edge& edge : in.dag->edges) {
    if (!data || !values.of(edge).empty()) {
      next[index(edge.from)].push_back(edge.to);
    }
  }
  for (std::uint32_t n = 0; n < in.dag->nodes.size(); ++n) {
    if (in.dag->nodes[n].op == Op::send) {
      next[n].push_back(in.dag->nodes[n].peer);
    }
  }
  std::vector<bool> reached(next.size(), false);
  std::vector<NodeId> open{from};
  while (!open.empty()) {
    const NodeId node = open.back();
    open.pop_back();
    for (const NodeId other : next[index(node)]) {
      if (!reached[index(other)]) {
        reached[index(other)] = true;
        open.push_back(other);
      }
    }
  }
  return reached;
}

TEST(Towers, HaveNoPathFromOneToTheOther) {
  const Lowered in = lowered();
  for (std::uint32_t m = 0; m < kMicrobatches; ++m) {
    for (const std::string pass : {"F", "B"}) {
      const std::string micro = pass + std::to_string(m);
      const NodeId text = node_called(in, "0" + micro + "@0"),
                   features = node_called(in, "1" + micro + "@1");

      EXPECT_FALSE(after(in, text, false)[index(features)]) << micro;
      EXPECT_FALSE(after(in, features, false)[index(text)]) << micro;
    }
  }
}

TEST(Towers, MeetInTheirLastRegionForwardAndPartThereBackward) {
  const Lowered in = lowered();
  for (std::uint32_t m = 0; m < kMicrobatches; ++m) {
    const std::string at = std::to_string(m);
    const NodeId join = node_called(in, "2F" + at + "@2"), part = node_called(in, "2B" + at + "@2");
    for (const std::string tower : {"0", "1"}) {
      const NodeId forward = node_called(in, tower + "F" + at + "@" + tower);
      const NodeId backward = node_called(in, tower + "B" + at + "@" + tower);

      EXPECT_TRUE(after(in, forward, true)[index(join)]);
      EXPECT_TRUE(after(in, part, true)[index(backward)]);
    }
  }
}

TEST(Towers, RunOnRanksOfTheirOwn) {
  const Lowered in = lowered();

  ASSERT_EQ(in.plans.train.programs.size(), 3U);
  for (std::uint32_t p = 0; p < 3; ++p) {
    EXPECT_EQ(in.plans.train.programs[p].ranks, std::vector<std::uint32_t>{p});
  }
  // Nothing of one tower passes through the other: messages go to and from the last rank alone.
  for (const Communicator& communicator : in.plans.train.communicators) {
    if (communicator.kind == Communicator::Kind::point_to_point) {
      EXPECT_TRUE(communicator.from == 2 || communicator.to == 2);
    }
  }
}

TEST(Towers, ShareNoChunkOnOneRank) {
  Config config = test::toy_config(1, 1, kMicrobatches);
  config.strategies.clear();

  const Expected<Plans> plans = plan(config, two_tower(), {});

  ASSERT_TRUE(plans) << to_string(plans.error());
  ASSERT_EQ(plans->train.chunks.size(), 3U);
  for (const std::size_t tower : {0U, 1U}) {
    for (const ValueId input : plans->train.chunks[tower].inputs) {
      EXPECT_TRUE(two_tower().value(input).is_input());
    }
  }
  EXPECT_EQ(plans->train.chunks[2].inputs.size(), 3U);  // of both towers, and the labels
}

}  // namespace
}  // namespace piper

// DAGs as text: every node has a name, and edges say what they carry.
#include "core/lower/dag_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "core/lower/edge_values.h"
#include "core/pipeline.h"
#include "tests/support/golden.h"
#include "tests/support/sharded_toy.h"
#include "tests/support/toy_model.h"

namespace piper {
namespace {

using test::ShardedShape;

// The DAG for training of a job after a phase, with the model that it speaks of.
struct Lowered {
  ModelGraph model;
  Dag dag;
};

Lowered lowered(const test::ShardedJob& job, std::string_view phase = "communicate") {
  Lowered out;
  const Trace trace = [&](const Phase& at) {
    if (at.name != phase || !out.dag.nodes.empty()) {
      return;
    }
    out.model = at.model;
    const auto* expanded = std::get_if<const Expanded*>(&at.value);
    out.dag = expanded != nullptr ? (*expanded)->dag : *std::get<const Dag*>(at.value);
  };
  const Expected<Plans> plans = plan(job.config, job.model, {job.proposal}, trace);
  PIPER_CHECK(plans.has_value(), "a job of the tests that has no plan");
  return out;
}

test::ShardedJob small_job() {
  ShardedShape shape;
  shape.microbatches = 2;
  shape.layers = 2;
  shape.zero = 0;
  shape.bucket_bytes = 0;
  return test::sharded_job(shape);
}

NodeId node_called(const Lowered& in, const std::string& name) {
  for (std::uint32_t n = 0; n < in.dag.nodes.size(); ++n) {
    if (describe(in.dag, in.model, NodeId{n}) == name) {
      return NodeId{n};
    }
  }
  PIPER_CHECK(false, "no node " + name + " in\n" + print(in.dag, in.model));
}

std::string carries(const Lowered& in, const std::string& from, const std::string& to) {
  const NodeId a = node_called(in, from), b = node_called(in, to);
  EXPECT_TRUE(std::any_of(in.dag.edges.begin(), in.dag.edges.end(),
                          [&](const Edge& e) { return e.from == a && e.to == b; }))
      << from << " -> " << to;
  std::string text;
  for (const Content& item : EdgeValues(in.dag, in.model).of({a, b})) {
    text += (text.empty() ? "" : ", ") + edge_label(item);
  }
  return text;
}

TEST(DagText, IsPleasantToRead) {
  const Lowered in = lowered(small_job());

  test::expect_golden("lower/dag", print(in.dag, in.model));
}

TEST(DagText, NamesEachNodeDifferently) {
  for (const ShardedShape& shape : test::small_shapes()) {
    const Lowered in = lowered(test::sharded_job(shape));
    std::vector<std::string> names;
    for (std::uint32_t n = 0; n < in.dag.nodes.size(); ++n) {
      names.push_back(describe(in.dag, in.model, NodeId{n}));
    }
    std::sort(names.begin(), names.end());

    const auto twice = std::adjacent_find(names.begin(), names.end());

    EXPECT_TRUE(twice == names.end()) << to_string(shape) << ": " << *twice;
  }
}

TEST(DagText, SaysWhatEdgesCarry) {
  const Lowered in = lowered(small_job());

  EXPECT_EQ(carries(in, "0F0@0", "send %3 m0@0"), "%3");
  EXPECT_EQ(carries(in, "recv %3 m0@1", "1F0@1"), "%3");
  EXPECT_EQ(carries(in, "0F0@0", "0B0@0"), "saved");
  EXPECT_EQ(carries(in, "1B0@1", "send grad %3 1 m0@1"), "grad %3");
  EXPECT_EQ(carries(in, "token_count@1", "1B0@1"), "count");
  EXPECT_EQ(carries(in, "grad_norm@0", "update b0@0"), "norm");
  EXPECT_EQ(carries(in, "0B1@0", "all_reduce b0@0"), "grad b0");
  EXPECT_EQ(carries(in, "0F0@0", "0F1@0"), "");  // the order of the stream
}

TEST(DagText, SaysSeveralValuesOfOneEdge) {
  test::ShardedJob job = small_job();
  ModelGraph& model = job.model;
  const ValueId extra{static_cast<std::uint32_t>(model.values.size())};
  model.values.push_back({"", DType::float32, {{1, 0}, {0, 2}}, RegionId{1}});
  model.regions[1].outputs.push_back(extra);
  model.regions[2].inputs.push_back(extra);
  job.config.mesh.axes = {{"pp", 1}, {"dp", 1}};
  job.config.strategies.clear();
  job.proposal = {};
  job.proposal.directives = {
      {TagDirective{{{{"REGION", Condition::Kind::in_range, {0, 1}}}, {}}, "PP", 0}, {}},
      {TagDirective{{{{"REGION", Condition::Kind::in_range, {2, 3}}}, {}}, "PP", 1}, {}}};
  const Lowered in = lowered(job);

  EXPECT_EQ(carries(in, "0F0@0", "1F0@0"), "%3, %6");
}

}  // namespace
}  // namespace piper

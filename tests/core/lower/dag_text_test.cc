// DAGs as text: nothing is lost, edges say what they carry, and damage is refused.
#include "core/lower/dag_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <variant>

#include "core/lower/edge_values.h"
#include "core/pipeline.h"
#include "tests/support/golden.h"
#include "tests/support/sharded_toy.h"
#include "tests/support/text_mutation.h"
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

auto fields(const Node& node) {
  return std::tie(node.op, node.route, node.program, node.stream, node.microbatch, node.chunk,
                  node.bucket, node.value, node.communicator, node.peer, node.origin);
}

auto fields(const BucketPolicy& policy) {
  return std::tie(policy.reduce_stream, policy.gather_stream, policy.prefetch, policy.origin,
                  policy.groups, policy.expert_of);
}

auto fields(const DagProgram& program) {
  return std::tie(program.ranks, program.buckets, program.origin);
}

template <typename Item>
void expect_same(const std::vector<Item>& read, const std::vector<Item>& written) {
  ASSERT_EQ(read.size(), written.size());
  for (std::size_t i = 0; i < read.size(); ++i) {
    EXPECT_TRUE(fields(read[i]) == fields(written[i])) << i;
  }
}

std::set<std::pair<NodeId, NodeId>> edges_of(const Dag& dag) {
  std::set<std::pair<NodeId, NodeId>> edges;
  for (const Edge& edge : dag.edges) {
    edges.insert({edge.from, edge.to});
  }
  return edges;
}

TEST(DagText, KeepsEverything) {
  for (const ShardedShape& shape : test::small_shapes()) {
    for (const char* phase : {"expand", "communicate"}) {
      const Lowered in = lowered(test::sharded_job(shape), phase);
      const std::string text = print(in.dag, in.model);

      const Expected<Dag> dag = parse_dag(text, in.model, "d.dag");

      ASSERT_TRUE(dag) << to_string(shape) << '\n' << to_string(dag.error());
      EXPECT_EQ(print(*dag, in.model), text);
      expect_same(dag->nodes, in.dag.nodes);
      expect_same(dag->policies, in.dag.policies);
      expect_same(dag->programs, in.dag.programs);
      for (std::size_t p = 0; p < in.dag.programs.size(); ++p) {
        const auto &read = dag->programs[p].streams, &written = in.dag.programs[p].streams;
        ASSERT_EQ(read.size(), written.size());
        for (std::size_t s = 0; s < read.size(); ++s) {
          EXPECT_EQ(read[s].name, written[s].name);
          EXPECT_EQ(read[s].kind, written[s].kind);
        }
      }
      EXPECT_EQ(edges_of(*dag), edges_of(in.dag));
      ASSERT_EQ(dag->uses.size(), in.dag.uses.size());
      for (std::size_t v = 0; v < in.dag.uses.size(); ++v) {
        ASSERT_EQ(dag->uses[v].size(), in.dag.uses[v].size());
        for (std::size_t u = 0; u < in.dag.uses[v].size(); ++u) {
          EXPECT_EQ(dag->uses[v][u].chunk, in.dag.uses[v][u].chunk);
          EXPECT_EQ(dag->uses[v][u].input, in.dag.uses[v][u].input);
        }
      }
      EXPECT_EQ(dag->chains.first, in.dag.chains.first);
      EXPECT_EQ(dag->chains.parameter, in.dag.chains.parameter);
      EXPECT_EQ(dag->chains.gradient, in.dag.chains.gradient);
      EXPECT_EQ(dag->chunks, in.dag.chunks);
      EXPECT_EQ(dag->buckets, in.dag.buckets);
      EXPECT_EQ(dag->communicators, in.dag.communicators);
      EXPECT_EQ(dag->wants_gradient, in.dag.wants_gradient);
      EXPECT_EQ(dag->makers, in.dag.makers);
      EXPECT_EQ(dag->chunk_split, in.dag.chunk_split);
      EXPECT_EQ(dag->chunk_sharding, in.dag.chunk_sharding);
    }
  }
}

TEST(DagText, KeepsFieldsThatNoDagHasToday) {
  Lowered in = lowered(small_job());
  BucketPolicy& policy = in.dag.policies[1];
  policy.prefetch = 3;
  policy.origin = 7;
  policy.reduce_stream = "a \"stream\"\n";
  policy.gather_stream = "";
  policy.groups = {{{0}, {1}}, {}};
  policy.expert_of = {{4, 5}, {}};
  in.dag.programs[0].origin = 9;
  in.dag.programs[1].streams[1].name = "another \\ name";
  in.dag.chunk_sharding[1] = 6;
  in.dag.nodes[0].origin = 5;
  in.dag.nodes[3].microbatch = 12;

  const Expected<Dag> dag = parse_dag(print(in.dag, in.model), in.model, "d.dag");

  ASSERT_TRUE(dag) << to_string(dag.error());
  expect_same(dag->nodes, in.dag.nodes);
  expect_same(dag->policies, in.dag.policies);
  expect_same(dag->programs, in.dag.programs);
  EXPECT_EQ(dag->chunk_sharding, in.dag.chunk_sharding);
  EXPECT_EQ(dag->programs[1].streams[1].name, in.dag.programs[1].streams[1].name);
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

TEST(DagText, SurvivesDamage) {
  ShardedShape shape;
  shape.microbatches = 1;
  shape.ep = 2;
  const Lowered in = lowered(test::sharded_job(shape));
  const std::string text = print(in.dag, in.model);
  std::size_t refused = 0, accepted = 0;
  for (std::uint32_t seed = 0; seed < 4000; ++seed) {
    const std::string damaged = test::TextMutation(seed)(text);

    const Expected<Dag> dag = parse_dag(damaged, in.model, "d.dag");

    if (dag) {
      ++accepted;
      ASSERT_EQ(print(*dag, in.model), damaged);
    } else {
      ++refused;
      for (const Diagnostic& diagnostic : dag.error()) {
        ASSERT_TRUE(diagnostic.code.starts_with("dag.")) << to_string(diagnostic);
        ASSERT_GT(diagnostic.where.line, 0u);
      }
    }
  }
  EXPECT_GT(refused, 2000u);
  EXPECT_GT(accepted, 40u);
}

TEST(DagText, RefusesChunksThatAreNotThere) {
  const ModelGraph model = test::toy_model();
  const std::string text =
      "piper-dag 1\ntrain world 1 microbatches 1 rows 1\ntag 0 layer\nsplit_backward "
      "(4294967294)\n";

  const Expected<Dag> dag = parse_dag(text, model, "d.dag");

  ASSERT_FALSE(dag);
  EXPECT_TRUE(dag.error().front().code.starts_with("dag."));
}

TEST(DagText, SaysWhereItIsWrong) {
  const Lowered in = lowered(small_job());
  const std::string text = print(in.dag, in.model);
  const auto refusal = [&](const std::string& part, const std::string& by) {
    std::string changed = text;
    const std::size_t at = changed.find(part);
    PIPER_CHECK(at != std::string::npos, "the test replaces what is not there");
    const Expected<Dag> dag = parse_dag(changed.replace(at, part.size(), by), in.model, "d.dag");
    std::string message = dag ? "accepted" : to_string(dag.error());
    return message.substr(std::min(message.find("error:"), message.size()));
  };

  EXPECT_EQ(refusal("piper-dag 1", "piper-dag 2"),
            "error: expected version 1 of the text of a DAG, got 2 [dag.version]");
  EXPECT_EQ(refusal("= forward", "= forwrd"),
            "error: unknown operation 'forwrd' (did you mean 'forward'?) [dag.syntax]");
  EXPECT_EQ(refusal("p0 s0 c0", "p0 s0 c7"), "error: expected a chunk below 2, got 7 [dag.range]");
  EXPECT_EQ(refusal("p0 s0 c0 m0", "p0 s0 m0"),
            "error: expected the chunk of the node [dag.range]");
  EXPECT_EQ(refusal("node 1 0F1@0", "node 1 0F2@0"),
            "error: expected '1@0 = forward p0 s0 c0 m', got '2@0 = forward p0 s0 c0 m': only the "
            "printed form is read back [dag.syntax]");
}

}  // namespace
}  // namespace piper

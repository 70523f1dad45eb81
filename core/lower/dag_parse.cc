// The parser of a DAG's text.
#include <algorithm>
#include <array>
#include <utility>

#include "core/ir/text_reader.h"
#include "core/lower/dag_names.h"
#include "core/lower/dag_text.h"
#include "core/plan/names.h"
#include "core/plan/tables_text.h"

namespace piper {
namespace {

class DagParser {
 public:
  DagParser(std::string_view text, const ModelGraph& model, const std::string& source)
      : in_(text, source, "dag.syntax"), model_(model) {}

  Expected<Dag> parse() {
    in_.expect("piper-dag");
    if (const std::uint32_t version = in_.number(); in_.ok() && version != 1) {
      in_.refuse("expected version 1 of the text of a DAG, got " + std::to_string(version),
                 "dag.version");
    }
    in_.end_of_line();
    tables();
    chunks();
    values();
    policies();
    programs();
    nodes();
    if (!in_.at_end()) {
      in_.expected("the next item of a DAG");
    }
    if (in_.ok()) {
      check();
    }
    if (!in_.ok()) {
      return fail(in_.take_error());
    }
    return std::move(dag_);
  }

 private:
  // Refuses a number at or above `limit`, right after it was read.
  void below(std::uint32_t value, std::size_t limit, const char* what) {
    if (value >= limit) {
      in_.refuse("expected a " + std::string(what) + " below " + std::to_string(limit) + ", got " +
                     std::to_string(value),
                 "dag.range");
    }
  }

  std::uint32_t number_below(std::size_t limit, const char* what) {
    const std::uint32_t value = in_.number();
    below(value, limit, what);
    return in_.ok() ? value : 0;
  }

  template <typename Id>
  std::vector<Id> list(std::string_view open, std::size_t limit, const char* what,
                       std::string_view close = ")") {
    std::vector<Id> items;
    in_.list(open, close, [&] { items.push_back(static_cast<Id>(number_below(limit, what))); });
    return items;
  }

  void tables() {
    Plan plan;
    read_tables(in_, plan);
    dag_.kind = plan.kind;
    dag_.world = plan.world;
    dag_.microbatches = plan.microbatches;
    dag_.global_rows = plan.global_rows;
    dag_.chunks = std::move(plan.chunks);
    dag_.buckets = std::move(plan.buckets);
    dag_.communicators = std::move(plan.communicators);
    dag_.origins = std::move(plan.origins);
    origin_of_node_ = std::move(plan.origin_of_node);
    if (in_.ok() && plan.tag_names != model_.tag_names) {
      in_.refuse("expected the tags of the model", "dag.range");
    }
    for (const Chunk& chunk : dag_.chunks) {
      for (const auto* values : {&chunk.inputs, &chunk.outputs}) {
        for (const ValueId value : *values) {
          below(index(value), model_.values.size(), "value");
        }
      }
      for (const BucketId bucket : chunk.buckets) {
        below(index(bucket), dag_.buckets.size(), "bucket");
      }
    }
  }

  void chunks() {
    dag_.chunk_split.assign(dag_.chunks.size(), {});
    dag_.chunk_sharding.assign(dag_.chunks.size(), Annotated::kNothing);
    while (in_.ok() && in_.accept("split_backward")) {
      const std::uint32_t chunk = number_below(dag_.chunks.size(), "chunk");
      in_.expect("microbatches");
      std::vector<std::uint32_t> split = list<std::uint32_t>("(", dag_.microbatches, "micro-batch");
      if (in_.ok()) {
        dag_.chunk_split[chunk] = std::move(split);
      }
      in_.end_of_line();
    }
    while (in_.ok() && in_.accept("sharded")) {
      const std::uint32_t chunk = number_below(dag_.chunks.size(), "chunk");
      in_.expect("by");
      const std::uint32_t by = in_.number();
      if (in_.ok()) {
        dag_.chunk_sharding[chunk] = by;
      }
      in_.end_of_line();
    }
  }

  void values() {
    const std::size_t count = model_.values.size();
    dag_.wants_gradient.assign(count, false);
    dag_.uses.resize(count);
    dag_.makers.resize(count);
    while (in_.ok() && in_.accept("value")) {
      const std::uint32_t v = number_below(count, "value");
      const bool gradient = in_.accept("gradient");
      in_.expect("makers");
      std::vector<ChunkId> makers = list<ChunkId>("(", dag_.chunks.size(), "chunk");
      in_.expect("uses");
      std::vector<Use> uses;
      in_.list("(", ")", [&] {
        const auto chunk = static_cast<ChunkId>(number_below(dag_.chunks.size(), "chunk"));
        in_.expect(":");
        uses.push_back({chunk, in_.number()});
      });
      in_.end_of_line();
      if (in_.ok()) {
        dag_.wants_gradient[v] = gradient;
        dag_.makers[v] = std::move(makers);
        dag_.uses[v] = std::move(uses);
      }
    }
  }

  void policies() {
    while (in_.ok() && in_.accept("policy")) {
      in_.item("policy", dag_.policies.size());
      BucketPolicy& policy = dag_.policies.emplace_back();
      in_.expect("origin");
      policy.origin = in_.number();
      in_.expect("prefetch");
      policy.prefetch = in_.number();
      in_.expect("reduce");
      policy.reduce_stream = in_.quoted();
      in_.expect("gather");
      policy.gather_stream = in_.quoted();
      in_.end_of_line();
      while (in_.ok() && in_.accept("home")) {
        policy.groups.emplace_back();
        in_.list("[", "]", [&] {
          policy.groups.back().push_back(list<std::uint32_t>("(", dag_.world, "position"));
        });
        if (in_.accept("experts")) {
          policy.expert_of.push_back(list<std::uint32_t>("(", kNoChain, "block"));
        }
        in_.end_of_line();
      }
    }
  }

  template <typename Enum, typename Names>
  Enum name(const Names& names, const char* what) {
    const std::string_view word = in_.word();
    const auto found = std::find(names.begin(), names.end(), word);
    if (in_.ok() && found == names.end()) {
      in_.refuse("unknown " + std::string(what) + " '" + std::string(word) + "'" +
                 suggest(word, {names.begin(), names.end()}));
    }
    return found == names.end() ? Enum{} : static_cast<Enum>(found - names.begin());
  }

  void programs() {
    while (in_.ok() && in_.accept("program")) {
      in_.item("program", dag_.programs.size());
      DagProgram& program = dag_.programs.emplace_back();
      in_.expect("origin");
      program.origin = in_.number();
      in_.expect("ranks");
      program.ranks = list<std::uint32_t>("(", dag_.world, "rank");
      in_.expect("buckets");
      program.buckets = list<BucketId>("(", dag_.buckets.size(), "bucket");
      in_.end_of_line();
      while (in_.ok() && in_.accept("stream")) {
        in_.item("stream", program.streams.size());
        LogicalStream& stream = program.streams.emplace_back();
        stream.kind = name<Stream::Kind>(kStreamKinds, "kind of stream");
        stream.name = in_.quoted();
        in_.end_of_line();
      }
    }
  }

  void nodes() {
    if (in_.accept("chains")) {
      in_.expect("of");
      with_chains_ = number_below(origin_of_node_.size() + 1, "number of nodes");
      in_.expect("nodes");
      in_.end_of_line();
    }
    while (in_.ok() && in_.accept("node")) {
      in_.item("node", dag_.nodes.size());
      node();
      in_.end_of_line();
    }
  }

  template <typename Id>
  void sigil(char sigil, Id& id, std::size_t limit, const char* what) {
    if (in_.accept_sigil(sigil)) {
      id = static_cast<Id>(number_below(limit, what));
    }
  }

  std::uint32_t required(char sigil, std::size_t limit, const char* what) {
    if (!in_.accept_sigil(sigil)) {
      in_.expected("'" + std::string(1, sigil) + "' and the number of a " + what);
    }
    return number_below(limit, what);
  }

  void node() {
    Node node;
    in_.skip_past(" = ");  // its name
    node.op = name<Op>(kOpNames, "operation");
    if (is_routing(node.op)) {
      node.route = name<Route>(kRoutes, "route");
    }
    node.program = static_cast<std::uint16_t>(required('p', dag_.programs.size(), "program"));
    if (in_.ok()) {
      const std::size_t streams = dag_.programs[node.program].streams.size();
      node.stream = static_cast<std::uint16_t>(required('s', streams, "stream"));
    }
    sigil('c', node.chunk, dag_.chunks.size(), "chunk");
    node.microbatch = required('m', kNoChain, "micro-batch");
    if (in_.accept("overlap")) {
      node.overlap = in_.number();
    }
    sigil('%', node.value, model_.values.size(), "value");
    sigil('b', node.bucket, dag_.buckets.size(), "bucket");
    if (in_.accept("on")) {
      node.communicator =
          static_cast<CommId>(number_below(dag_.communicators.size(), "communicator"));
    }
    if (in_.accept("peer")) {
      node.peer = static_cast<NodeId>(number_below(origin_of_node_.size(), "node"));
    }
    const bool needs_chunk = runs_chunk(node.op) || is_routing(node.op);
    if (in_.ok() && needs_chunk && !valid(node.chunk)) {
      in_.refuse("expected the chunk of the node", "dag.range");
    }
    chains();
    edges();
    dag_.add(node);
  }

  void chains() {
    if (dag_.nodes.size() < with_chains_) {
      dag_.chains.first.push_back(static_cast<std::uint32_t>(dag_.chains.parameter.size()));
    }
    if (!in_.accept("chains")) {
      return;
    }
    const auto chain = [&] { return in_.accept("-") ? kNoChain : in_.number(); };
    in_.list("(", ")", [&] {
      dag_.chains.parameter.push_back(chain());
      in_.expect("/");
      dag_.chains.gradient.push_back(chain());
    });
  }

  void edges() {
    if (!in_.accept("after")) {
      return;
    }
    do {
      dag_.add_edge(static_cast<NodeId>(number_below(origin_of_node_.size(), "node")), dag_.next());
      if (in_.accept("(")) {
        in_.skip_past(")");  // what it carries is found again
      }
    } while (in_.ok() && in_.accept(","));
  }

  void check() {
    if (dag_.nodes.size() != origin_of_node_.size()) {
      in_.refuse("expected " + std::to_string(origin_of_node_.size()) + " nodes, got " +
                     std::to_string(dag_.nodes.size()),
                 "dag.range");
      return;
    }
    for (std::size_t n = 0; n < dag_.nodes.size(); ++n) {
      dag_.nodes[n].origin = origin_of_node_[n];
    }
  }

  TextReader in_;
  const ModelGraph& model_;
  Dag dag_;
  std::vector<std::uint32_t> origin_of_node_;
  std::uint32_t with_chains_ = 0;
};

}  // namespace

Expected<Dag> parse_dag(std::string_view text, const ModelGraph& model, const std::string& source) {
  PIPER_ASSIGN(Dag dag, DagParser(text, model, source).parse());
  if (auto difference = first_difference(text, print(dag, model), source, "dag.syntax")) {
    return fail(std::move(*difference));
  }
  return dag;
}

}  // namespace piper

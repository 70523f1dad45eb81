#include "core/lower/expand.h"

#include <algorithm>
#include <string>

#include "core/lower/experts.h"
#include "core/lower/orders.h"

namespace piper {
namespace {

class Expander {
 public:
  Expander(Dag tables, const Annotated& annotated) : annotated_(annotated) {
    out_.dag = std::move(tables);
    out_.nodes.resize(dag().chunks.size());
  }

  Expected<Expanded> run() {
    make_nodes();
    connect();
    add_all_to_alls(out_.dag, annotated_, out_.nodes);
    PIPER_TRY(add_orders(out_, annotated_));
    return std::move(out_);
  }

 private:
  Dag& dag() { return out_.dag; }

  NodeId add_pass(ChunkId chunk, Op op) {
    Node node;
    node.op = op;
    node.program = static_cast<std::uint16_t>(dag().chunk(chunk).program);
    node.chunk = chunk;
    node.origin = dag().programs[node.program].origin;
    const NodeId first = dag().next();
    const std::uint32_t count = runs(dag(), dag().chunk(chunk));
    for (std::uint32_t i = 0; i < count; ++i) {
      node.microbatch = microbatch_at(dag().chunk(chunk), i);
      dag().add(node);
    }
    return first;
  }

  // Program by program, so that what a rank works on lies together.
  void make_nodes() {
    std::vector<std::vector<ChunkId>> chunks(dag().programs.size());
    for (std::uint32_t c = 0; c < dag().chunks.size(); ++c) {
      chunks[dag().chunks[c].program].push_back(ChunkId{c});
    }
    for (const std::vector<ChunkId>& own : chunks) {
      for (const ChunkId c : own) {
        ChunkNodes& nodes = out_.nodes[index(c)];
        nodes.forward = add_pass(c, Op::forward);
        if (!dag().trains() || !dag().chunk(c).has_backward) {
          continue;
        }
        nodes.backward = add_pass(c, Op::backward);
        for (const std::uint32_t m : dag().chunk_split[index(c)]) {
          Node weight = dag().node(offset(nodes.backward, position_of(dag().chunk(c), m)));
          dag().nodes[index(nodes.backward) + position_of(dag().chunk(c), m)].op =
              Op::backward_input;
          weight.op = Op::backward_weight;
          const NodeId id = dag().add(weight);
          nodes.weight = valid(nodes.weight) ? nodes.weight : id;
        }
      }
    }
  }

  // Edges between chunks of one program, for the micro-batches that both run.
  void add_edges(NodeId from, const Chunk& a, NodeId to, const Chunk& b) {
    for (const std::uint32_t m : shared_microbatches(dag(), a, b)) {
      dag().add_edge(offset(from, position_of(a, m)), offset(to, position_of(b, m)));
    }
  }

  void connect() {
    for (std::uint32_t c = 0; c < dag().chunks.size(); ++c) {
      const Chunk& chunk = dag().chunks[c];
      const ChunkNodes& nodes = out_.nodes[c];
      if (valid(nodes.backward)) {
        add_edges(nodes.forward, chunk, nodes.backward, chunk);
      }
      for (const std::uint32_t m : valid(nodes.weight) ? dag().chunk_split[c] : kNone) {
        dag().add_edge(offset(nodes.backward, position_of(chunk, m)),
                       weight_node(dag(), nodes, ChunkId{c}, m));
      }
      for (const ValueId input : chunk.inputs) {
        for (const ChunkId maker : dag().makers[index(input)]) {
          connect(input, maker, ChunkId{c});
        }
      }
    }
  }

  void connect(ValueId value, ChunkId maker_id, ChunkId user_id) {
    const Chunk &maker = dag().chunk(maker_id), &user = dag().chunk(user_id);
    const bool gradient = computes_gradient(dag(), value, user_id);
    if (maker.program != user.program) {
      if (!shared_microbatches(dag(), maker, user).empty()) {
        out_.flows.push_back({value, maker_id, user_id, false});
        if (gradient) {
          out_.flows.push_back({value, maker_id, user_id, true});
        }
      }
      return;
    }
    if (routes(dag(), maker_id, user_id)) {
      return;  // through an all-to-all
    }
    const ChunkNodes &source = out_.nodes[index(maker_id)], &target = out_.nodes[index(user_id)];
    add_edges(source.forward, maker, target.forward, user);
    if (gradient) {
      add_edges(target.backward, user, source.backward, maker);
    }
  }

  inline static const std::vector<std::uint32_t> kNone;

  const Annotated& annotated_;
  Expanded out_;
};

}  // namespace

NodeId weight_node(const Dag& dag, const ChunkNodes& nodes, ChunkId chunk, std::uint32_t m) {
  const std::vector<std::uint32_t>& split = dag.chunk_split[index(chunk)];
  if (!valid(nodes.weight)) {
    return none<NodeId>();
  }
  const auto at = split.size() == dag.microbatches
                      ? split.begin() + m
                      : std::lower_bound(split.begin(), split.end(), m);
  return at != split.end() && *at == m
             ? offset(nodes.weight, static_cast<std::uint32_t>(at - split.begin()))
             : none<NodeId>();
}

Expected<Expanded> expand(Dag tables, const Annotated& annotated) {
  return Expander(std::move(tables), annotated).run();
}

}  // namespace piper

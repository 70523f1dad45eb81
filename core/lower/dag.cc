#include "core/lower/dag.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace piper {
namespace {

std::string stage_of(const Dag& dag, const ModelGraph& model, ChunkId chunk) {
  for (const Tag& tag : dag.chunk(chunk).tags) {
    if (model.tag_names[index(tag.name)] == "PP") {
      return std::to_string(tag.index);
    }
  }
  return "c" + std::to_string(index(chunk)) + ".";
}

std::string_view short_name(Op op) {
  switch (op) {
    case Op::forward:
      return "F";
    case Op::backward:
      return "B";
    case Op::backward_input:
      return "BI";
    case Op::backward_weight:
      return "BW";
    default:
      return to_string(op);
  }
}

std::string text_of(const Dag& dag, const ModelGraph& model, const Node& node) {
  const std::string microbatch = std::to_string(node.microbatch);
  switch (node.op) {
    case Op::forward:
    case Op::backward:
    case Op::backward_input:
    case Op::backward_weight:
      return stage_of(dag, model, node.chunk) + std::string(short_name(node.op)) + microbatch;
    case Op::send:
    case Op::recv:
      return std::string(to_string(node.op)) + (valid(node.chunk) ? " gradient of v" : " v") +
             std::to_string(index(node.value)) + " mb " + microbatch;
    case Op::all_to_all: {
      constexpr std::array<std::string_view, 5> routes{"", "into forward of ", "out of forward of ",
                                                       "into backward of ", "out of backward of "};
      return "all_to_all " + std::string(routes[static_cast<std::size_t>(node.route)]) +
             stage_of(dag, model, node.chunk) + " mb " + microbatch;
    }
    case Op::all_gather:
    case Op::reduce_scatter:
      return std::string(to_string(node.op)) + " bucket " + std::to_string(index(node.bucket)) +
             " chain " + microbatch;
    default:
      return std::string(to_string(node.op)) +
             (valid(node.bucket) ? " bucket " + std::to_string(index(node.bucket)) : "");
  }
}

}  // namespace

std::uint32_t runs(const Dag& dag, const Chunk& chunk) {
  return chunk.microbatches.empty() ? dag.microbatches
                                    : static_cast<std::uint32_t>(chunk.microbatches.size());
}

std::uint32_t position_of(const Chunk& chunk, std::uint32_t m) {
  if (chunk.microbatches.empty()) {
    return m;
  }
  return static_cast<std::uint32_t>(
      std::lower_bound(chunk.microbatches.begin(), chunk.microbatches.end(), m) -
      chunk.microbatches.begin());
}

std::vector<std::uint32_t> shared_microbatches(const Dag& dag, const Chunk& a, const Chunk& b) {
  std::vector<std::uint32_t> shared;
  if (a.microbatches.empty() && b.microbatches.empty()) {
    shared.resize(dag.microbatches);
    std::iota(shared.begin(), shared.end(), 0U);
  } else if (a.microbatches.empty()) {
    shared = b.microbatches;
  } else if (b.microbatches.empty()) {
    shared = a.microbatches;
  } else {
    std::set_intersection(a.microbatches.begin(), a.microbatches.end(), b.microbatches.begin(),
                          b.microbatches.end(), std::back_inserter(shared));
  }
  return shared;
}

bool computes_gradient(const Dag& dag, ValueId value, ChunkId chunk) {
  return dag.trains() && !dag.makers[index(value)].empty() && dag.wants_gradient[index(value)] &&
         dag.chunk(chunk).has_backward;
}

bool routes(const Dag& dag, ChunkId maker, ChunkId user) {
  return dag.chunk_sharding[index(maker)] != dag.chunk_sharding[index(user)];
}

std::string describe(const Dag& dag, const ModelGraph& model, NodeId id) {
  return text_of(dag, model, dag.node(id)) + " @" + std::to_string(dag.node(id).program);
}

std::string print(const Dag& dag, const ModelGraph& model) {
  const Adjacency before = predecessors(dag);
  std::string text;
  for (std::uint32_t n = 0; n < dag.nodes.size(); ++n) {
    const Node& node = dag.nodes[n];
    text += "%" + std::to_string(n) + " = " + describe(dag, model, NodeId{n}) + " on '" +
            dag.programs[node.program].streams[node.stream].name + "'";
    if (valid(node.peer)) {
      text += " with %" + std::to_string(index(node.peer));
    }
    for (std::uint32_t e = before.first[n]; e < before.first[n + 1]; ++e) {
      text += (e == before.first[n] ? " after %" : ", %") + std::to_string(index(before.other[e]));
    }
    text += "\n";
  }
  return text;
}

Adjacency predecessors(const Dag& dag) {
  Adjacency out;
  out.first.assign(dag.nodes.size() + 1, 0);
  for (const Edge& edge : dag.edges) {
    ++out.first[index(edge.to) + 1];
  }
  std::partial_sum(out.first.begin(), out.first.end(), out.first.begin());
  out.other.resize(dag.edges.size());
  std::vector<std::uint32_t> fill(out.first.begin(), out.first.end() - 1);
  for (const Edge& edge : dag.edges) {
    out.other[fill[index(edge.to)]++] = edge.from;
  }
  return out;
}

}  // namespace piper

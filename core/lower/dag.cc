#include "core/lower/dag.h"

#include <numeric>

namespace piper {
namespace {

std::string stage_of(const Dag& dag, const ModelGraph& model, const Chunk& chunk) {
  for (const Tag& tag : chunk.tags) {
    if (model.tag_names[index(tag.name)] == "PP") {
      return std::to_string(tag.index);
    }
  }
  return "c" + std::to_string(&chunk - dag.chunks.data()) + ".";
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

Adjacency adjacency(const Dag& dag, bool forward) {
  Adjacency out;
  out.first.assign(dag.nodes.size() + 1, 0);
  for (const Edge& edge : dag.edges) {
    ++out.first[index(forward ? edge.from : edge.to) + 1];
  }
  std::partial_sum(out.first.begin(), out.first.end(), out.first.begin());
  out.other.resize(dag.edges.size());
  std::vector<std::uint32_t> fill(out.first.begin(), out.first.end() - 1);
  for (const Edge& edge : dag.edges) {
    out.other[fill[index(forward ? edge.from : edge.to)]++] = forward ? edge.to : edge.from;
  }
  return out;
}

}  // namespace

std::string describe(const Dag& dag, const ModelGraph& model, NodeId id) {
  const Node& node = dag.node(id);
  std::string text;
  switch (node.op) {
    case Op::forward:
    case Op::backward:
    case Op::backward_input:
    case Op::backward_weight:
      text = stage_of(dag, model, dag.chunk(node.chunk)) + std::string(short_name(node.op)) +
             std::to_string(node.microbatch);
      break;
    case Op::send:
    case Op::recv:
      text = std::string(to_string(node.op)) + (valid(node.chunk) ? " gradient of v" : " v") +
             std::to_string(index(node.value)) + " mb " + std::to_string(node.microbatch);
      break;
    default:
      text = to_string(node.op);
      if (valid(node.bucket)) {
        text += " bucket " + std::to_string(index(node.bucket));
      }
  }
  return text + " @" + std::to_string(node.program);
}

std::string print(const Dag& dag, const ModelGraph& model) {
  const Adjacency before = predecessors(dag);
  std::string text;
  for (std::uint32_t n = 0; n < dag.nodes.size(); ++n) {
    text += "%" + std::to_string(n) + " = " + describe(dag, model, NodeId{n});
    const DagProgram& program = dag.programs[dag.nodes[n].program];
    text += " on '" + program.streams[dag.nodes[n].stream].name + "'";
    if (valid(dag.nodes[n].peer) && index(dag.nodes[n].peer) != n) {
      text += " with %" + std::to_string(index(dag.nodes[n].peer));
    }
    for (std::uint32_t e = before.first[n]; e < before.first[n + 1]; ++e) {
      text += (e == before.first[n] ? " after %" : ", %") + std::to_string(index(before.other[e]));
    }
    text += "\n";
  }
  return text;
}

Adjacency successors(const Dag& dag) {
  return adjacency(dag, true);
}
Adjacency predecessors(const Dag& dag) {
  return adjacency(dag, false);
}

}  // namespace piper

#include "core/lower/edge_values.h"

#include <algorithm>

namespace piper {

EdgeValues::EdgeValues(const Dag& dag, const ModelGraph& model)
    : dag_(dag), accesses_({model, dag.chunks, dag.buckets, dag.microbatches, dag.trains()}) {}

std::vector<Accesses::Entry> EdgeValues::accesses(NodeId id) const {
  const Node& node = dag_.node(id);
  Accessor of;
  of.op = node.op;
  of.program = node.program;
  of.chunk = node.chunk;
  of.value = node.value;
  of.bucket = node.bucket;
  (counts_chains(node.op) ? of.chain : of.microbatch) = node.microbatch;
  of.into_experts = node.route == Route::enter_forward || node.route == Route::enter_backward;
  of.backward = node.route == Route::enter_backward || node.route == Route::leave_backward;
  if (runs_chunk(node.op) && index(id) < dag_.chains.first.size()) {
    const std::size_t buckets = dag_.chunk(node.chunk).buckets.size();
    const std::uint32_t first = dag_.chains.first[index(id)];
    of.parameter_chains = {dag_.chains.parameter.data() + first, buckets};
    of.gradient_chains = {dag_.chains.gradient.data() + first, buckets};
  }
  std::vector<Accesses::Entry> entries;
  accesses_.find(of, entries);
  return entries;
}

// What one leaves there and the other needs whole. Those that add to one thing pass nothing on.
std::vector<Content> EdgeValues::of(const Edge& edge) const {
  const std::vector<Accesses::Entry> before = accesses(edge.from), after = accesses(edge.to);
  std::vector<Content> carried;
  for (const Accesses::Entry& left : before) {
    if (left.access == Access::reads || left.access == Access::keeps) {
      continue;
    }
    const bool is_needed =
        std::any_of(after.begin(), after.end(), [&](const Accesses::Entry& needed) {
          return needed.content == left.content &&
                 (needed.access == Access::reads || needed.access == Access::changes);
        });
    // The labels of every micro-batch are one value to whoever counts them.
    const bool is_known = !carried.empty() && carried.back().value == left.content.value &&
                          left.content.kind == BufferKind::input;
    if (is_needed && !is_known) {
      carried.push_back(left.content);
    }
  }
  return carried;
}

std::string edge_label(const Content& content) {
  switch (content.kind) {
    case BufferKind::input:
    case BufferKind::activation:
    case BufferKind::routed:
      return "%" + std::to_string(index(content.value));
    case BufferKind::gradient:
    case BufferKind::routed_gradient:
      return "grad %" + std::to_string(index(content.value));
    case BufferKind::parameter:
    case BufferKind::gathered:
      return "b" + std::to_string(index(content.bucket));
    case BufferKind::parameter_gradient:
    case BufferKind::full_gradient:
      return "grad b" + std::to_string(index(content.bucket));
    case BufferKind::token_count:
      return "count";
    case BufferKind::grad_norm:
      return "norm";
    case BufferKind::loss_sum:
      return "sum";
    case BufferKind::saved:
    case BufferKind::optimizer:
      break;
  }
  return std::string(to_string(content.kind));
}

}  // namespace piper

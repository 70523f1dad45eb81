#include "core/lower/experts.h"

#include <algorithm>

#include "core/lower/streams.h"

namespace piper {
namespace {

class Router {
 public:
  Router(Dag& dag, const Annotated& annotated, const std::vector<ChunkNodes>& nodes)
      : dag_(dag), annotated_(annotated), nodes_(nodes) {}

  void run(ChunkId experts) {
    const Chunk& chunk = dag_.chunk(experts);
    const Annotated::Sharding& sharding = annotated_.shardings[dag_.chunk_sharding[index(experts)]];
    const std::vector<std::uint32_t>& place = dag_.programs[chunk.program].ranks;
    std::vector<std::vector<std::uint32_t>> groups = *groups_in(sharding.what.family, {place});
    for (std::vector<std::uint32_t>& group : groups) {
      for (std::uint32_t& member : group) {
        member = place[member];
      }
    }
    node_.op = Op::all_to_all;
    node_.chunk = experts;
    node_.program = static_cast<std::uint16_t>(chunk.program);
    node_.communicator = collective(dag_, groups, sharding.what.stream);
    node_.stream =
        stream_of(dag_, chunk.program, sharding.what.stream, Stream::Kind::communication);
    node_.origin = sharding.origin;
    const std::vector<ValueId> inputs = routed_inputs(dag_, experts),
                               outputs = routed_outputs(dag_, experts);
    add(experts, Route::enter_forward, inputs);
    add(experts, Route::leave_forward, outputs);
    add(experts, Route::enter_backward, outputs);
    add(experts, Route::leave_backward, inputs);
  }

 private:
  void add(ChunkId experts, Route route, const std::vector<ValueId>& values) {
    const bool forward = route == Route::enter_forward || route == Route::leave_forward;
    const bool enters = route == Route::enter_forward || route == Route::enter_backward;
    const bool gradients = std::any_of(values.begin(), values.end(),
                                       [&](ValueId v) { return dag_.wants_gradient[index(v)]; });
    const ChunkNodes& own = nodes_[index(experts)];
    if (values.empty() || (!forward && (!gradients || !valid(own.backward)))) {
      return;
    }
    const Chunk& chunk = dag_.chunk(experts);
    const std::uint32_t count = runs(dag_, chunk);
    const NodeId first = dag_.next();
    node_.route = route;
    for (std::uint32_t i = 0; i < count; ++i) {
      node_.microbatch = microbatch_at(chunk, i);
      dag_.add(node_);
      const NodeId inside = offset(forward ? own.forward : own.backward, i);
      enters ? dag_.add_edge(offset(first, i), inside) : dag_.add_edge(inside, offset(first, i));
    }
    for (const ValueId value : values) {
      const bool made_inside = route == Route::leave_forward || route == Route::enter_backward;
      if (made_inside) {
        for (const Use& use : dag_.uses[index(value)]) {
          join(experts, first, use.chunk, value, forward, !forward);
        }
      } else {
        for (const ChunkId maker : dag_.makers[index(value)]) {
          join(experts, first, maker, value, forward, forward);
        }
      }
    }
  }

  // Edges between the all-to-alls and a chunk outside, for the micro-batches that both run.
  void join(ChunkId experts, NodeId first, ChunkId other_id, ValueId value, bool forward,
            bool other_is_before) {
    const Chunk &chunk = dag_.chunk(experts), &other = dag_.chunk(other_id);
    if (other.program != chunk.program || other.experts) {
      return;
    }
    const ChunkNodes& nodes = nodes_[index(other_id)];
    const NodeId outside = forward ? nodes.forward : nodes.backward;
    if (!valid(outside) || (!forward && !dag_.wants_gradient[index(value)])) {
      return;
    }
    for (const std::uint32_t m : shared_microbatches(dag_, chunk, other)) {
      const NodeId route = offset(first, position_of(chunk, m)),
                   node = offset(outside, position_of(other, m));
      other_is_before ? dag_.add_edge(node, route) : dag_.add_edge(route, node);
    }
  }

  Dag& dag_;
  const Annotated& annotated_;
  const std::vector<ChunkNodes>& nodes_;
  Node node_;
};

}  // namespace

void add_all_to_alls(Dag& dag, const Annotated& annotated, const std::vector<ChunkNodes>& nodes) {
  for (std::uint32_t c = 0; c < dag.chunks.size(); ++c) {
    if (dag.chunks[c].experts) {
      Router(dag, annotated, nodes).run(ChunkId{c});
    }
  }
}

std::vector<ValueId> routed_inputs(const Dag& dag, ChunkId experts) {
  std::vector<ValueId> values;
  for (const ValueId value : dag.chunk(experts).inputs) {
    const bool outside =
        std::any_of(dag.makers[index(value)].begin(), dag.makers[index(value)].end(),
                    [&](ChunkId maker) { return routes(dag, maker, experts); });
    if (outside) {
      values.push_back(value);
    }
  }
  return values;
}

std::vector<ValueId> routed_outputs(const Dag& dag, ChunkId experts) {
  std::vector<ValueId> values;
  for (const ValueId value : dag.chunk(experts).outputs) {
    const bool outside =
        std::any_of(dag.uses[index(value)].begin(), dag.uses[index(value)].end(),
                    [&](const Use& use) { return routes(dag, experts, use.chunk); });
    if (outside) {
      values.push_back(value);
    }
  }
  return values;
}

}  // namespace piper

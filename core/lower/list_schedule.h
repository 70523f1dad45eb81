// Critical-path list scheduling of the DAG on its streams: a total order a stream, and a timeline
// in which every edge points forward. A send and its receive, or the members of a collective, are
// one operation that holds all their streams.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/lower/dag.h"

namespace piper {

// Durations in ticks. Only their order of magnitude matters to the plan, which is correct for any.
struct Costs {
  std::vector<std::uint64_t> forward;  // by ChunkId
  std::uint64_t of(const Dag& dag, NodeId node) const;
};
// "unit": a forward is 1000, B 2000, BI and BW 1000; "analytical": the same scaled by the chunk's
// FLOPs.
Costs make_costs(const Dag& dag, const std::string& model);

struct Timeline {
  std::vector<std::uint64_t> start, end;  // by NodeId
  std::vector<std::vector<std::vector<NodeId>>>
      order;  // by program and stream: the order of its nodes
};

// `extra`: further edges, not in the DAG. Error order.cycle, with the nodes of one cycle, where the
// edges have one.
Expected<Timeline> list_schedule(const Dag& dag, const ModelGraph& model,
                                 const std::vector<Edge>& extra, const Costs& costs);

}  // namespace piper

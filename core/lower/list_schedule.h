// Critical-path list scheduling of the DAG on its streams: a total order a stream, and a timeline
// in which every edge points forward. A send and its receive, or the members of a collective, are
// one operation that holds all their streams.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/cost/costs.h"
#include "core/lower/dag.h"

namespace piper {

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

// Critical-path list scheduling of the DAG on its streams: a total order a stream, and a timeline
// in which every edge points forward. A send and its receive, or the members of a collective, are
// one operation that holds all their streams.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/cost/costs.h"
#include "core/lower/dag.h"

namespace piper {

// By NodeId: the operation that it is part of, named by its smallest node. A send and its receive,
// or the members of a collective, are one.
std::vector<std::uint32_t> operations(const Dag& dag);

struct Timeline {
  std::vector<std::uint64_t> start, end;  // by NodeId
  std::vector<std::vector<std::vector<NodeId>>>
      order;  // by program and stream: the order of its nodes
};

// `extra`: further edges, not in the DAG. Nothing where the edges have a cycle (order_cycle.h says
// which).
std::optional<Timeline> list_schedule(const Dag& dag, const std::vector<Edge>& extra,
                                      const Costs& costs);

}  // namespace piper

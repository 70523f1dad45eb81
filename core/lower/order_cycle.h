// Says why nothing can run: the shortest cycle of orders and data.
//
//     job.toml:25:1: error: hanayo: the orders and the data they need form a cycle of 6 tasks
//     note: 6F0@1 comes before send %14 m0@1: activation %14
//     ...
//     job.toml:25:1: note: 6B0@1 comes before 6F0@1: order_chain of hanayo on rank 1, action 7
//     before action 13
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/ir/model_graph.h"
#include "core/lower/dag.h"

namespace piper {

// What a chain or an order says of one program: every member of a group comes before every member
// of the next. The edges have it too; here is who says it, and where.
struct OrderLine {
  struct Member {
    NodeId node;
    std::uint32_t group = 0;   // ascending
    std::uint32_t number = 0;  // of the action in its chain or the group in its order, from 1
  };
  std::uint32_t program = 0, origin = 0;
  bool is_chain = false;
  std::vector<Member> members;
};

// order.cycle, of a DAG whose edges have a cycle; `orders` are all that it was told. Tasks have the
// names that `piper plan --explain` takes; each note is an edge with its reason: what is passed on,
// or whose order, with its place. What a chain says of two of its actions is one edge, however many
// are between them, and where receives and gathers are posted is left out, so that the cycle is the
// same for every comm.receive_distance. Cold: its time is bounded, in a large DAG at the cost of
// the shortest.
Diagnostic order_cycle(const Dag& dag, const std::vector<OrderLine>& orders,
                       const ModelGraph& model);

}  // namespace piper

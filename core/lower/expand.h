// Expands chunks into one compute node a pass and micro-batch, adds the all-to-alls of experts, and
// turns orders into edges.
//     chunk 0 @0, chunk 1 @1, 2 micro-batches   ->   0F0 0F1 0B0 0B1 @0, 1F0 1F1 1B0 1B1 @1
// Runs after fuse, before other communication: a value that crosses places is a Flow until
// `communicate` makes it a send and a receive.
#pragma once

#include <vector>

#include "core/directives/annotated.h"
#include "core/lower/dag.h"
#include "core/lower/order_cycle.h"

namespace piper {

// A value, or its gradient, that goes from a chunk of one program to a chunk of another, once for
// each micro-batch that both run.
struct Flow {
  ValueId value;
  ChunkId maker, user;
  bool gradient = false;  // from user's backward to maker's; else from maker's forward to user's
};

// Where a chunk's nodes are: the i-th micro-batch that it runs is node first + i, of `weight` the
// i-th of Dag::chunk_split.
struct ChunkNodes {
  NodeId forward = none<NodeId>(), backward = none<NodeId>(), weight = none<NodeId>();
};
inline NodeId offset(NodeId first, std::uint32_t i) {
  return NodeId{index(first) + i};
}

// The node that computes the weight gradients of micro-batch m alone; none where B does.
NodeId weight_node(const Dag& dag, const ChunkNodes& nodes, ChunkId chunk, std::uint32_t m);

struct Expanded {
  Dag dag;
  std::vector<ChunkNodes> nodes;  // by ChunkId
  std::vector<Flow> flows;        // by user, then value
  // By program: all its computations in the order that a chain gave; empty where it left any of it
  // open.
  std::vector<std::vector<NodeId>> total_order;
  std::vector<OrderLine> orders;
  Diagnostics warnings;  // of orders that leave something out: order.left_out
};

// Errors: order.action, order.twice, order.no_match.
Expected<Expanded> expand(Dag tables, const Annotated& annotated);

}  // namespace piper

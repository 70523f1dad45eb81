// Expands chunks into one compute node a pass and micro-batch, and turns orders into edges.
//     chunk 0 @0, chunk 1 @1, 2 micro-batches   ->   0F0 0F1 0B0 0B1 @0, 1F0 1F1 1B0 1B1 @1
// Runs after fuse, before any communication: a value that crosses places is a Flow until
// `communicate` makes it a send and a receive.
#pragma once

#include <vector>

#include "core/directives/annotated.h"
#include "core/lower/dag.h"

namespace piper {

// A value, or its gradient, that goes from a chunk of one program to a chunk of another, once a
// micro-batch.
struct Flow {
  ValueId value;
  ChunkId producer, consumer;
  bool gradient =
      false;  // from consumer's backward to producer's; else from producer's forward to consumer's
};

// Where a chunk's nodes are: micro-batch m of a pass is node first + m.
struct ChunkNodes {
  NodeId forward = none<NodeId>(), backward = none<NodeId>(), weight = none<NodeId>();

  static NodeId at(NodeId first, std::uint32_t microbatch) {
    return NodeId{index(first) + microbatch};
  }
};

struct Expanded {
  Dag dag;
  std::vector<ChunkNodes> nodes;  // by ChunkId
  std::vector<Flow> flows;        // by consumer, then value
};

// Errors: order.action, order.twice, order.no_match.
Expected<Expanded> expand(Dag tables, const Annotated& annotated);

}  // namespace piper

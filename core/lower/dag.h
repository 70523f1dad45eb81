// The global training DAG: compute of every place, explicit communication, and edges. Flat arrays
// and small ids, since a large job has millions of nodes; everything about a chunk or bucket is in
// its table, not in the node.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/directives/annotated.h"
#include "core/ir/model_graph.h"
#include "core/plan/plan.h"

namespace piper {

// A stream of a program, before positions are known.
struct LogicalStream {
  std::string name;
  Stream::Kind kind = Stream::Kind::communication;
};

struct Node {
  Op op = Op::forward;
  std::uint16_t program = 0;
  std::uint16_t stream = 0;  // index into the program's logical streams
  std::uint32_t microbatch = 0;
  ChunkId chunk =
      none<ChunkId>();  // chunks; sends and receives of gradients: the consumer that computed it
  BucketId bucket = none<BucketId>();
  ValueId value = none<ValueId>();  // sends, receives
  CommId communicator = none<CommId>();
  // Of a send or receive: its counterpart. Of a collective: the next member's node, in a ring. Else
  // itself.
  NodeId peer = none<NodeId>();
  std::uint32_t origin = 0;
};

struct Edge {
  NodeId from, to;
};

struct DagProgram {
  std::vector<std::uint32_t> ranks;
  std::vector<LogicalStream> streams;  // 0 is compute
  std::vector<BucketId> buckets;
  std::uint32_t origin = 0;  // of its placement
  std::string reduce_stream;
};

// What a value's gradient is to a consumer: computed by it or not.
struct Dag {
  Plan::Kind kind = Plan::Kind::train;
  std::uint32_t world = 1, microbatches = 1;
  std::int64_t global_rows = 1;
  std::vector<Chunk> chunks;  // producers before consumers
  std::vector<Bucket> buckets;
  std::vector<bool>
      wants_gradient;  // by ValueId: has a path to the loss and something to differentiate
  std::vector<std::vector<ChunkId>> consumers;  // by ValueId: chunks that read it, ascending
  std::vector<ChunkId> producer;                // by ValueId: none for inputs
  std::vector<bool> chunk_split;                // by ChunkId: B is BI and BW
  std::vector<DagProgram> programs;
  std::vector<Communicator> communicators;
  std::vector<Provenance> origins;
  std::vector<Node> nodes;
  std::vector<Edge> edges;  // from happens before to

  bool trains() const { return kind == Plan::Kind::train; }
  const Node& node(NodeId id) const { return nodes[index(id)]; }
  const Chunk& chunk(ChunkId id) const { return chunks[index(id)]; }
  const Bucket& bucket(BucketId id) const { return buckets[index(id)]; }
  NodeId add(Node node) {
    nodes.push_back(node);
    return NodeId{static_cast<std::uint32_t>(nodes.size() - 1)};
  }
  void add_edge(NodeId from, NodeId to) { edges.push_back({from, to}); }
};

// Does consumer `chunk` compute a gradient of its input `value`?
bool computes_gradient(const Dag& dag, ValueId value, ChunkId chunk);

// `1F3 chunk=1 @1`, `send v4 mb 3 0>1`, ... for messages and pictures.
std::string describe(const Dag& dag, const ModelGraph& model, NodeId node);

// One line a node with its predecessors. For `piper plan --after`.
std::string print(const Dag& dag, const ModelGraph& model);

// Adjacency in both directions, built once after the last edge.
struct Adjacency {
  std::vector<std::uint32_t> first;  // by node, one more than nodes
  std::vector<NodeId> other;
};
Adjacency successors(const Dag& dag);
Adjacency predecessors(const Dag& dag);

}  // namespace piper

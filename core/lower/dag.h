// The global training DAG: compute of every place, explicit communication, and edges. Flat arrays
// and small ids, since a large job has millions of nodes; everything about a chunk or bucket is in
// its table, not in the node.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/cost/costs.h"
#include "core/directives/annotated.h"
#include "core/ir/model_graph.h"
#include "core/plan/plan.h"

namespace piper {

// A stream of a program, before positions are known.
struct LogicalStream {
  std::string name;
  Stream::Kind kind = Stream::Kind::communication;
};

// Which of a chunk's four all-to-alls a node is.
enum class Route : std::uint8_t {
  none,
  enter_forward,
  leave_forward,
  enter_backward,
  leave_backward
};

struct Node {
  Op op = Op::forward;
  Route route = Route::none;
  std::uint16_t program = 0;
  std::uint16_t stream = 0;         // index into the program's logical streams
  std::uint32_t microbatch = 0;     // of reductions and gathers: the chain
  ChunkId chunk = none<ChunkId>();  // chunks, all-to-alls; messages of gradients: the consumer
  BucketId bucket = none<BucketId>();
  ValueId value = none<ValueId>();  // messages
  CommId communicator = none<CommId>();
  // Of a send or receive: its counterpart. Of a collective: the next member's node, in a ring.
  NodeId peer = none<NodeId>();
  std::uint32_t overlap = 0;  // computations with one number other than 0: an overlap group
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
};

// A chunk that reads a value, and which of its inputs that is.
struct Use {
  ChunkId chunk;
  std::uint32_t input;
};

// What the planner knows about a bucket beside Bucket.
struct BucketPolicy {
  std::string reduce_stream = "reduce", gather_stream = "gather";
  std::uint32_t prefetch = 1;
  std::uint32_t origin = 0;
  // For each home, in the order of Bucket::homes: groups of positions in its ranks. Members of a
  // group shard the bucket; those at one place in their groups, and with the same experts, hold the
  // same.
  std::vector<std::vector<std::vector<std::uint32_t>>> groups;
  // For each home and position: the block of experts there. Empty: no experts.
  std::vector<std::vector<std::uint32_t>> expert_of;
};

// For each computation and bucket of its chunk, the chains it is in: k-th gather and k-th reduction
// of the bucket on its program. Empty where nothing is sharded.
struct ChainTable {
  std::vector<std::uint32_t> first;  // by NodeId: of its chunk's first bucket
  std::vector<std::uint32_t> parameter, gradient;
};

// Chunks that share regions: one a place, where a stage lives on several. Usually one.
struct Dag {
  Plan::Kind kind = Plan::Kind::train;
  std::uint32_t world = 1, microbatches = 1;
  std::int64_t global_rows = 1;
  std::vector<Chunk> chunks;  // producers before consumers
  std::vector<Bucket> buckets;
  std::vector<BucketPolicy> policies;        // by BucketId
  std::vector<bool> wants_gradient;          // by ValueId: differentiable, and leads to the loss
  std::vector<std::vector<Use>> uses;        // by ValueId, ascending
  std::vector<std::vector<ChunkId>> makers;  // by ValueId: chunks that compute it; none for inputs
  // By ChunkId: the micro-batches in which B is BI and BW, ascending.
  std::vector<std::vector<std::uint32_t>> chunk_split;
  std::vector<std::uint32_t>
      chunk_sharding;  // by ChunkId: its experts' ShardDirective, or kNothing
  std::vector<DagProgram> programs;
  std::vector<Communicator> communicators;
  std::vector<Provenance> origins;
  std::vector<Node> nodes;
  std::vector<Edge> edges;  // from happens before to
  ChainTable chains;

  bool trains() const { return kind == Plan::Kind::train; }
  const Node& node(NodeId id) const { return nodes[index(id)]; }
  const Chunk& chunk(ChunkId id) const { return chunks[index(id)]; }
  const Bucket& bucket(BucketId id) const { return buckets[index(id)]; }
  NodeId next() const { return NodeId{static_cast<std::uint32_t>(nodes.size())}; }
  NodeId add(const Node& node) {
    nodes.push_back(node);
    return NodeId{static_cast<std::uint32_t>(nodes.size() - 1)};
  }
  void add_edge(NodeId from, NodeId to) { edges.push_back({from, to}); }
};

// How many micro-batches a chunk runs, and which its i-th is.
std::uint32_t runs(const Dag& dag, const Chunk& chunk);
inline std::uint32_t microbatch_at(const Chunk& chunk, std::uint32_t i) {
  return chunk.microbatches.empty() ? i : chunk.microbatches[i];
}
// The place of micro-batch m among those that the chunk runs; it must run it.
std::uint32_t position_of(const Chunk& chunk, std::uint32_t m);
// Those that both run, ascending.
std::vector<std::uint32_t> shared_microbatches(const Dag& dag, const Chunk& a, const Chunk& b);

// Does this chunk compute a gradient of its input?
bool computes_gradient(const Dag& dag, ValueId value, ChunkId chunk);

// Is the value made or used by experts on one side, and not on the other?
bool routes(const Dag& dag, ChunkId maker, ChunkId user);

// What durations depend on.
CostScope scope_of(const Dag& dag);

// `1F3@1`, `send %4 m3@0`: its name (plan/node_name.h).
std::string describe(const Dag& dag, const ModelGraph& model, NodeId node);

// dag_text.h describes it.
std::string print(const Dag& dag, const ModelGraph& model);

// Adjacency in one direction, built once after the last edge.
struct Adjacency {
  std::vector<std::uint32_t> first;  // by node, one more than nodes
  std::vector<NodeId> other;
};
Adjacency predecessors(const Dag& dag);

}  // namespace piper

#include "core/lower/dag.h"

#include <algorithm>
#include <numeric>

namespace piper {
std::uint32_t runs(const Dag& dag, const Chunk& chunk) {
  return chunk.microbatches.empty() ? dag.microbatches
                                    : static_cast<std::uint32_t>(chunk.microbatches.size());
}

std::uint32_t position_of(const Chunk& chunk, std::uint32_t m) {
  if (chunk.microbatches.empty()) {
    return m;
  }
  return static_cast<std::uint32_t>(
      std::lower_bound(chunk.microbatches.begin(), chunk.microbatches.end(), m) -
      chunk.microbatches.begin());
}

std::vector<std::uint32_t> shared_microbatches(const Dag& dag, const Chunk& a, const Chunk& b) {
  std::vector<std::uint32_t> shared;
  if (a.microbatches.empty() && b.microbatches.empty()) {
    shared.resize(dag.microbatches);
    std::iota(shared.begin(), shared.end(), 0U);
  } else if (a.microbatches.empty()) {
    shared = b.microbatches;
  } else if (b.microbatches.empty()) {
    shared = a.microbatches;
  } else {
    std::set_intersection(a.microbatches.begin(), a.microbatches.end(), b.microbatches.begin(),
                          b.microbatches.end(), std::back_inserter(shared));
  }
  return shared;
}

bool computes_gradient(const Dag& dag, ValueId value, ChunkId chunk) {
  return dag.trains() && !dag.makers[index(value)].empty() && dag.wants_gradient[index(value)] &&
         dag.chunk(chunk).has_backward;
}

bool routes(const Dag& dag, ChunkId maker, ChunkId user) {
  return dag.chunk_sharding[index(maker)] != dag.chunk_sharding[index(user)];
}

CostScope scope_of(const Dag& dag) {
  CostScope scope{dag.chunks, dag.buckets,      dag.communicators,
                  {},         dag.microbatches, dag.global_rows};
  for (const DagProgram& program : dag.programs) {
    scope.ranks.emplace_back(program.ranks);
  }
  return scope;
}

Adjacency predecessors(const Dag& dag) {
  Adjacency out;
  out.first.assign(dag.nodes.size() + 1, 0);
  for (const Edge& edge : dag.edges) {
    ++out.first[index(edge.to) + 1];
  }
  std::partial_sum(out.first.begin(), out.first.end(), out.first.begin());
  out.other.resize(dag.edges.size());
  std::vector<std::uint32_t> fill(out.first.begin(), out.first.end() - 1);
  for (const Edge& edge : dag.edges) {
    out.other[fill[index(edge.to)]++] = edge.from;
  }
  return out;
}

}  // namespace piper

// What an edge of the DAG carries. Edges are not labelled: it is found from what their two nodes
// write and read, so it cannot disagree with them.
//
//     0F0@0 -> 0F0's backward    saved             what autograd keeps
//     0F0@0 -> send %4 m0@0      %4                a value; several where a chunk has several
//     1B0@1 -> send grad %4      grad %4           the gradient of a value
//     0B3@0 -> all_reduce b0@0   grad b0           a bucket's gradients; b0: its parameters
//     token_count -> 1B0@1       count             also norm, sum
//     0F1@0 -> recv %4 m3@0      nothing           temporal: order only
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/lower/dag.h"

namespace piper {

struct Carried {
  enum class Kind : std::uint8_t {
    value,
    gradient,  // of a value, computed by `chunk`
    saved,     // of `chunk`
    parameters,
    gradients,  // of a bucket
    count,      // of tokens
    norm,
    sum,  // of losses
  };
  Kind kind = Kind::value;
  std::uint32_t id = 0;  // of the value or bucket
  ChunkId chunk = none<ChunkId>();
  std::uint32_t microbatch = 0;
  bool operator==(const Carried&) const = default;
};
std::string to_string(const Carried& carried);

// Empty: the edge is temporal.
std::vector<Carried> carried(const Dag& dag, const ModelGraph& model, const Edge& edge);

}  // namespace piper

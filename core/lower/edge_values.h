// What an edge of the DAG carries. Edges are not labelled: it is found from what their two nodes
// write and read (plan/accesses.h), so it cannot disagree with them.
//
//     0F0@0 -> 0B0@0             saved             what autograd keeps
//     0F0@0 -> send %4 m0@0      %4                a value; several where a chunk has several
//     1B0@1 -> send grad %4      grad %4           the gradient of a value
//     0B3@0 -> all_reduce b0@0   grad b0           a bucket's gradients; b0: its parameters
//     token_count -> 1B0@1       count             also norm, sum
//     0F1@0 -> recv %4 m3@0      nothing           temporal: order only
#pragma once

#include <string>
#include <vector>

#include "core/lower/dag.h"
#include "core/plan/accesses.h"

namespace piper {

class EdgeValues {
 public:
  // Of a DAG that stays.
  EdgeValues(const Dag& dag, const ModelGraph& model);

  // Empty: the edge is temporal.
  std::vector<Content> of(const Edge& edge) const;

 private:
  std::vector<Accesses::Entry> accesses(NodeId node) const;

  const Dag& dag_;
  Accesses accesses_;
};

std::string edge_label(const Content& content);

}  // namespace piper

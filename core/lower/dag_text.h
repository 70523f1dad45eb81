// The text of a DAG, one line an item:
//
//     piper-dag 1
//     (the tables of a plan: see plan/text.h)
//     split_backward 0 microbatches (0, 1)
//     sharded 3 by 0
//     value 3 gradient makers (0) uses (1:0)
//     policy 0 origin 2 prefetch 1 reduce "reduce" gather "gather"
//       home [(0, 1)]
//     program 0 origin 2 ranks (0, 1) buckets (0)
//       stream 0 compute "compute"
//     node 4 1F0@1 = forward p1 s0 c1 m0 after 9 (%3), 2
//     node 9 recv %3 m0@1 = recv p1 s1 m0 %3 on 0 peer 8 after 1
//
// Chunks whose backward is split; those of experts, by their shard directive; values that have a
// gradient, the chunks that make them, and those that use them with the place of the input; a
// bucket's policy with the groups of each home (and `experts (0, 0)`, the block at each position);
// programs and their streams. A node has a name, and after `=` all that the name is made of: p =
// program, s = stream, c = chunk, m = micro-batch (chain), % = value, b = bucket. With sharded
// parameters, `chains of N nodes` says for how many there is an entry, and a node's `chains (0/-)`
// its gather and reduction chain with each bucket. `after` are its predecessors with what the edge
// carries; without parentheses the edge is temporal. Edges are a set: two between the same nodes
// print as one.
#pragma once

#include <string>

#include "core/lower/dag.h"
#include "core/lower/expand.h"
#include "core/plan/node_name.h"

namespace piper {

NodeIdentity identity(const Node& node);

// A DAG after `expand`, with lines for what still is to cross places:
//     flow %3 from 0 to 1
//     flow grad %3 from 1 to 0
std::string print(const Expanded& expanded, const ModelGraph& model);

}  // namespace piper

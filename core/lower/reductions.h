// Gradients are reduced over the homes of their bucket, exactly once for each micro-batch, whatever
// the reason that it has several; sharded parameters are gathered. ZeRO (Rajbhandari et al., arXiv
// 1910.02054) by chains: a chain is a maximal run of uses of a bucket on one place's compute order
// with no computation of another bucket in between.
//
//     F0 B0 (bucket a)  F0 B0 (bucket b) ...
//     ->  gather a, F0 B0, reduce-scatter a, gather b, ...
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "core/lower/dag.h"

namespace piper {

// The node after which a program's gradient of a bucket is complete.
using GradientsReady = std::map<std::pair<std::uint32_t, BucketId>, NodeId>;

// `order`: the computations of each program in their total order. Fills Dag::chains.
GradientsReady add_gathers_and_reductions(Dag& dag, const std::vector<std::vector<NodeId>>& order);

// Stages 1 and 2 hold whole parameters: they are gathered again from the updated shards.
void add_gather_after_update(Dag& dag, std::uint32_t program, BucketId bucket, NodeId update);

}  // namespace piper

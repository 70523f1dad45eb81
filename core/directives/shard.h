// Experts: parameters of the selected regions are partitioned over each group of the family, in
// contiguous blocks; values that enter or leave go through an all-to-all, forward and backward.
//     region 5 EP=0 @0,1,2,3      ->   region 5 EP=0 @0,1,2,3 sharded 0
// Runs after replicate: over the ranks that hold the same experts, each gradient is reduced as for
// any parameter.
// Errors: shard.family (no partition of a place by the family), shard.conflict, shard.edge (a value
// crosses places and enters or leaves experts at once), shard.parameters (a number of parameters
// that the group does not divide), directive.family, directive.ranks, and those of select_regions.
#pragma once

#include <string>

#include "core/directives/descriptor.h"

namespace piper {

// An all-to-all on `stream` before and after, forward and backward.
struct ShardDirective {
  Filter filter;
  Family family;
  std::string stream = "expert";
};
template <>
const Descriptor<ShardDirective>& descriptor();

}  // namespace piper

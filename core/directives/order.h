// Temporal order between sub-DAGs on the compute stream of each place.
//     order [{PP=0, MB=0, PASS=F}], [{PP=0, MB=1, PASS=F}]
//                                 ->   0F0 before 0F1, wherever both run on one place
//     order_chain ranks=[0, 2] 0F0 0F1 0B0 ...
//                                 ->   a total order of these actions there
// Only recorded here: lowering turns it into edges when micro-batches are expanded. A chain's stage
// is the index of tag PP; its pieces expand in place, backward ones reversed. Errors: order.groups
// (fewer than two), order.chain (no place with these ranks), and, at expansion, order.action (a
// stage, micro-batch or pass that this place does not run), order.twice, order.cycle.
#pragma once

#include <cstdint>
#include <vector>

#include "core/directives/descriptor.h"

namespace piper {

// Everything that a group selects runs before everything that the next one selects. A group of
// several filters is an overlap group: its members are interleaved by list scheduling under the
// job's cost model.
struct OrderDirective {
  std::vector<std::vector<Filter>> groups;
};
template <>
const Descriptor<OrderDirective>& descriptor();

// The same, packed: a chain of single actions on the compute stream of `ranks`.
struct Action {
  std::uint32_t stage = 0;  // index of tag "PP"
  std::uint32_t microbatch = 0;
  Pass pass = Pass::forward;
  // Consecutive actions with the same number other than 0 are an overlap group.
  std::uint32_t overlap = 0;
  bool operator==(const Action&) const = default;
};
struct OrderChainDirective {
  Ranks ranks;
  std::vector<Action> actions;
};
template <>
const Descriptor<OrderChainDirective>& descriptor();

}  // namespace piper

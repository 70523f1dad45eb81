// Orders as edges: user order between computations of one place.
#pragma once

#include "core/directives/annotated.h"
#include "core/lower/expand.h"

namespace piper {

// Chains become a path, an overlap group in it a bundle of parallel paths; groups of filters become
// edges from every node of one to every node of the next on the same place. In an evaluate plan
// orders are projected on what is there. What a
// place's chain leaves out is warned of (order.left_out). Errors: order.action, order.twice,
// order.chain, order.no_match.
Status add_orders(Expanded& expanded, const Annotated& annotated);

}  // namespace piper

// Parameters of the selected regions live on all ranks of their places, and each micro-batch's
// gradient is reduced over them; optionally sharded (ZeRO, Rajbhandari et al., arXiv 1910.02054).
//     region 3 PP=0 @0,2          ->   region 3 PP=0 @0,2 replicated zero 2 on reduce
// Runs after place. What no plugin replicates, core replicates on its place.
// Errors: replicate.family (no partition of a place by the family), replicate.conflict,
// replicate.shard (parameters sharded without gradients, gradients without the optimizer),
// directive.family, directive.ranks, and those of select_regions.
#pragma once

#include "core/directives/annotated.h"

namespace piper {

Expected<Annotated> apply(Annotated dag, const ReplicateDirective& replicate,
                          const Provenance& from, std::uint32_t origin);

}  // namespace piper

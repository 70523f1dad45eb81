// Parameters of the selected regions live on all ranks, which must be the region's place: each
// micro-batch's gradient is then reduced over them on `reduce_stream`.
//     region 3 PP=0 @0,2          ->   region 3 PP=0 @0,2 replicated @0,2
// Runs after place. What no plugin replicates, core replicates on its place.
// Errors: replicate.place (other ranks than the place's), replicate.conflict, and those of
// select_regions.
#pragma once

#include "core/directives/annotated.h"

namespace piper {

Expected<Annotated> apply(Annotated dag, const ReplicateDirective& replicate,
                          const Provenance& from, std::uint32_t origin);

}  // namespace piper

// Who executes. All ranks of a place share one program; places are equal or disjoint.
//     region 3 PP=0 @?            ->   region 3 PP=0 @0,2
// Errors: place.conflict (points at the first), place.stream, directive.ranks, and those of
// select_regions.
#pragma once

#include "core/directives/annotated.h"

namespace piper {

Expected<Annotated> apply(Annotated dag, const PlaceDirective& place, const Provenance& from,
                          std::uint32_t origin);

}  // namespace piper

// Names a group of regions.
//     region 3 layer=1            ->   region 3 layer=1 PP=0
// Runs first: every later directive may select by the new tag. A region has a tag at most once;
// regions that differ in a tag that a directive gave are never fused into one chunk. Errors:
// tag.conflict, and those of select_regions.
#pragma once

#include "core/directives/annotated.h"

namespace piper {

Expected<Annotated> apply(Annotated dag, const TagDirective& tag, const Provenance& from,
                          std::uint32_t origin);

}  // namespace piper

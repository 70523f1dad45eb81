// Who executes. All ranks of a place share one program; places are equal or disjoint. What nothing
// places runs on all ranks.
//     region 3 PP=0 @?            ->   region 3 PP=0 @0,2
// Errors: place.conflict (points at the first), place.stream, directive.ranks, those of
// select_regions; and, once all are there, place.missing, place.overlap (two places that share some
// ranks) and place.idle.
#pragma once

#include <string>

#include "core/directives/descriptor.h"

namespace piper {

// The filter may name micro-batches, so that a stage lives on several places (bidirectional
// pipelines).
struct PlaceDirective {
  Filter filter;
  Ranks ranks;
  std::string stream = "compute";
};
template <>
const Descriptor<PlaceDirective>& descriptor();

}  // namespace piper

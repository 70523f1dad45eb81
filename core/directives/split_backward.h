// B becomes BI (gradients of inputs) and BW (gradients of parameters).
//     region 3 PP=0               ->   region 3 PP=0 split_backward
// A filter may name micro-batches: the others keep their B.
// Runs after tag, before place. Regions that differ in it are never fused. Errors: those of
// select_regions.
#pragma once

#include "core/directives/annotated.h"

namespace piper {

Expected<Annotated> apply(Annotated dag, const SplitBackwardDirective& split,
                          const Provenance& from, std::uint32_t origin);

}  // namespace piper

// Micro-batches: cuts the batch of the whole model along its rows into n parts, remainders to the
// earlier ones.
//     microbatches 1              ->   microbatches 4
// Errors: split.dim (only MB, the rows, can be cut), split.part (a filter that leaves regions out),
// split.twice, split.rows (fewer rows than parts).
#pragma once

#include "core/directives/annotated.h"

namespace piper {

Expected<Annotated> apply(Annotated dag, const SplitDirective& split, const Provenance& from,
                          std::uint32_t origin);

}  // namespace piper

// Activation recomputation: which regions' forward keeps nothing but its inputs, so that it runs
// again right before the backward.
//     mode "full":  region 3 layer=0, region 4 layer=0, region 5 layer=1
//                   ->   region 3 layer=0 recomputed 0, region 4 layer=0 recomputed 0,
//                        region 5 layer=1 recomputed 1
// What is recomputed together is a run of consecutive selected regions with one index of `layer`
// (or none): one after the other, so that the values within one layer alone are there at once.
// Runs after the last directive: it selects by the tags that directives gave, too.
#pragma once

#include "core/config/config.h"
#include "core/directives/annotated.h"

namespace piper {

// Errors: those of the filter in a [[directive]] (config.type, directive.unknown_tag,
// directive.no_match, directive.filter), at it.
Expected<Annotated> mark_recomputed(Annotated dag, const Config& config);

}  // namespace piper

// Activation recomputation: the forward of the selected regions keeps nothing but its inputs, and
// runs again right before the backward.
//     region 3 layer=0, region 4 layer=0, region 5 layer=1
//     ->   region 3 layer=0 recomputed 0, region 4 layer=0 recomputed 0,
//          region 5 layer=1 recomputed 1
// What is recomputed together is a run of consecutive regions that one directive selects, with one
// index of `layer` (or none): one run after the other, so that the values within one layer alone
// are there at once. What is recomputed already stays as it is. Runs last, so that it selects by
// the tags that directives gave, too; the job's [activation_checkpoint] comes after all others.
// Errors: those of select_regions, and of the filter in [activation_checkpoint], at it.
#pragma once

#include <cstdint>

#include "core/directives/descriptor.h"

namespace piper {

struct RecomputeDirective {
  Filter filter;
};
template <>
const Descriptor<RecomputeDirective>& descriptor();

// What it says of a region.
struct Recomputed {
  static constexpr std::uint32_t kNever = 0xffffffff;
  std::uint32_t unit = kNever;  // of those that are recomputed together
  std::uint32_t origin = 0;     // 0: [activation_checkpoint]
};

}  // namespace piper

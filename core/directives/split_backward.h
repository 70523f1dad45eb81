// B becomes BI (gradients of inputs) and BW (gradients of parameters).
//     region 3 PP=0               ->   region 3 PP=0 split_backward
// A filter may name micro-batches: the others keep their B.
// Runs after tag, before place. Regions that differ in it are never fused. Errors: those of
// select_regions.
#pragma once

#include <cstdint>
#include <vector>

#include "core/directives/descriptor.h"

namespace piper {

struct SplitBackwardDirective {
  Filter filter;
};
template <>
const Descriptor<SplitBackwardDirective>& descriptor();

// What it says of a region.
struct BackwardSplit {
  std::vector<std::uint32_t> microbatches;  // whose backward is split, ascending
  std::uint32_t origin = 0;                 // who split it first; 0: nobody
};

}  // namespace piper

// Micro-batches: cuts the batch of the whole model along its rows into n parts, remainders to the
// earlier ones.
//     microbatches 1              ->   microbatches 4
// Errors: split.dim (only MB, the rows, can be cut), split.part (a filter that leaves regions out),
// split.twice, split.rows (fewer rows than parts).
#pragma once

#include <cstdint>
#include <string>

#include "core/directives/descriptor.h"

namespace piper {

struct SplitDirective {
  Filter filter;
  std::string dim = "MB";
  std::uint32_t n = 1;
};
template <>
const Descriptor<SplitDirective>& descriptor();

}  // namespace piper

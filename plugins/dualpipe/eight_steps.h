// The order of DualPipe and DualPipeV.
#pragma once

#include <cstdint>

#include "row.h"

namespace dualpipe {

using pipeline::Lane;
using pipeline::Row;

// Two streams of `microbatches` each meet on a rank: `near` enters the pipeline closer to it than
// `far` does. `depth` ranks lie between an entrance and the innermost rank, this one included, and
// `rank` of them before this one. (DeepSeek-AI 2024, DeepSeek-V3 Technical Report, section 3.2.1
// and figure 5; the eight steps are those of the DualPipe repository.) Holds 2 * depth + 1
// activations.
Row eight_steps(Lane near, Lane far, std::uint32_t depth, std::uint32_t rank,
                std::uint32_t microbatches);

}  // namespace dualpipe

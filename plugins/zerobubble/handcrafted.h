// Zero-bubble orders that a rule for each rank writes down.
#pragma once

#include <cstdint>

#include "row.h"

namespace zerobubble {

using pipeline::Row;
using pipeline::Shape;

// Half the warm-up of interleaved 1F1B, and gradients of weights put off: rank r keeps r of them
// for the gaps of its cool-down. With one stage a rank this is ZB1P. `group`: as in interleaved
// 1F1B. (Qi et al. 2023, Zero Bubble Pipeline Parallelism, section 2; the rule is PyTorch's,
// ScheduleInterleavedZeroBubble.) Holds min(MV, (V-1) group + R).
Row interleaved(const Shape& shape, std::uint32_t rank, std::uint32_t group);

// 1F1B in which only those backwards are split whose weights can fill a gap: the first r of rank r,
// and those of its cool-down. (Qi et al. 2023, section 2.1, ZB-H1; the rule is that of sail-sg's
// quick start.) Holds R.
Row zb_h1(const Shape& shape, std::uint32_t rank);

// Two stages a rank, down the ranks and back. For at least 2R - 1 micro-batches no rank idles
// between its first and last action; fewer are what is left of 2R - 1 without the others. (Qi et
// al. 2024, Pipeline Parallelism with Controllable Memory, section 4, V-ZB; the steps are
// PyTorch's, ScheduleZBVZeroBubble.) Holds 2R.
Row zbv(const Shape& shape, std::uint32_t rank);

}  // namespace zerobubble

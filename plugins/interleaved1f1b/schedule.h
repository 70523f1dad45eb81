// The order of one stage's forwards and backwards.
#pragma once

#include <piper/order.h>

#include <cstdint>
#include <vector>

namespace interleaved1f1b {

// min(stages - 1 - stage, microbatches) forwards; then one forward, one backward; then the
// backwards that are left. Holds at most min(microbatches, stages - stage) activations.
std::vector<piper_action> one_forward_one_backward(std::uint32_t stage, std::uint32_t stages,
                                                   std::uint32_t microbatches);

// All forwards, then all backwards, both in order of micro-batches.
std::vector<piper_action> gpipe(std::uint32_t stage, std::uint32_t microbatches);

}  // namespace interleaved1f1b

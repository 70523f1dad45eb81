// What emulated computations and links take ([emulate]): the runtime sleeps so long, and the
// simulator counts so long.
#pragma once

#include <cstdint>

#include "core/config/config.h"
#include "core/plan/plan.h"
#include "core/simulate/simulate.h"

namespace piper {

// Nanoseconds, by program and task. A rank's time of a micro-batch is shared evenly by the chunks
// that the micro-batch meets there. What is not emulated takes nothing.
Durations emulated_durations(const Plan& plan, const EmulateConfig& emulate);

// Nanoseconds of a message, and of a collective of `bytes` as a ring of `members`: an all-reduce
// takes two turns, a reduce-scatter or an all-gather one.
std::uint64_t message_delay(const EmulateConfig& emulate, std::int64_t bytes);
std::uint64_t ring_delay(const EmulateConfig& emulate, std::uint32_t turns, std::int64_t bytes,
                         std::uint32_t members);

}  // namespace piper

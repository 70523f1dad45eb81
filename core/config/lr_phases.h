// How the steps of a job are shared out by [lr_scheduler].
#pragma once

#include <cstdint>

#include "core/config/config.h"

namespace piper {

// Steps of warm-up and of decay, as asked for and as they fit: the warm-up is cut to all steps, the
// decay to those after the warm-up. Where no ratio is given the decay takes all of those.
struct LrPhases {
  std::int64_t warmup_asked = 0, warmup = 0;
  std::int64_t decay_asked = 0, decay = 0;
};
LrPhases lr_phases(const LrSchedulerConfig& config, std::int64_t steps);

}  // namespace piper

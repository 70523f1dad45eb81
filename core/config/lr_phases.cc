#include "core/config/lr_phases.h"

#include <algorithm>
#include <cmath>

namespace piper {

LrPhases lr_phases(const LrSchedulerConfig& config, std::int64_t steps) {
  LrPhases phases;
  phases.warmup_asked = config.warmup_steps;
  phases.warmup = std::min(config.warmup_steps, steps);
  phases.decay_asked = steps - phases.warmup;
  if (config.decay_ratio) {
    const double wanted = std::nearbyint(static_cast<double>(steps) * *config.decay_ratio);
    phases.decay_asked = static_cast<std::int64_t>(wanted);
  }
  phases.decay = std::min(phases.decay_asked, steps - phases.warmup);
  return phases;
}

}  // namespace piper

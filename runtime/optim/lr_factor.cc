// The schedule of TorchTitan (components/lr_scheduler.py), whose steps count from 0. With W warm-up
// steps, D decay steps and T steps in all, S = T + 1 - W - D steps are stable: the decay ends one
// step after the last, so the last one still learns. For i = step - 1:
//
//   i < W           (i + 1) / W
//   i < W + S       1
//   else            min + (1 - min) * f(p),  p = (i + 1 - W - S) / D
//                   f: linear 1 - p, sqrt 1 - sqrt(p), cosine (1 + cos(pi p)) / 2
//
// W and D are cut to what fits: core/config/lr_phases.h.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/config/lr_phases.h"
#include "runtime/optim/optimizer.h"

namespace piper {
namespace {

double decayed(Decay type, double progress) {
  switch (type) {
    case Decay::none:
      return 1;
    case Decay::linear:
      return 1 - progress;
    case Decay::sqrt:
      return 1 - std::sqrt(progress);
    case Decay::cosine:
      return 0.5 * (1 + std::cos(std::numbers::pi * progress));
  }
  return 1;
}

}  // namespace

double lr_factor(const LrSchedulerConfig& config, std::int64_t step, std::int64_t steps) {
  const LrPhases phases = lr_phases(config, steps);
  const std::int64_t stable_end = steps + 1 - phases.decay;  // warm-up included
  if (step <= phases.warmup) {
    return static_cast<double>(step) / static_cast<double>(phases.warmup);
  }
  if (step <= stable_end || config.decay_type == Decay::none) {
    return 1;
  }
  const double progress =
      std::min(1.0, static_cast<double>(step - stable_end) / static_cast<double>(phases.decay));
  return config.min_lr_factor + (1 - config.min_lr_factor) * decayed(config.decay_type, progress);
}

}  // namespace piper

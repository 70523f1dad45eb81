// What is reported of one training step.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace piper {

struct StepRecord {
  std::int64_t step = 0;
  std::optional<double> loss;  // of the global batch, before the update; none: no label counts
  std::optional<double> held_out_loss;  // after the step; none: not evaluated
  double grad_norm = 0;                 // before clipping
  double lr = 0;                        // of the default optimizer group
  std::int64_t tokens = 0;              // counted labels
  double seconds = 0;
  double bubble = 0;    // 1 - busy compute time / (ranks x step time)
  bool updated = true;  // false: skipped, because no label counts or something is not finite
  std::vector<std::int64_t> peak_bytes;          // by rank: measured, since the start
  std::vector<std::int64_t> planned_peak_bytes;  // by rank: what the plan says

  double tokens_per_second() const {
    return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
  }
};

}  // namespace piper

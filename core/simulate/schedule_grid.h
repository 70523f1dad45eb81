// The picture that everyone draws of a pipeline schedule: a row for each place, its computations
// over time with their micro-batches.
#pragma once

#include <string>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/show/grid.h"
#include "core/simulate/analysis.h"

namespace piper {

// Error show.too_large, beyond kMostPictured computations.
Expected<Grid> schedule_grid(const Plan& plan, const ModelGraph& model, const Simulation& run,
                             const Analysis& analysis, const TimeUnit& unit, std::string title,
                             std::vector<std::string> facts);

}  // namespace piper

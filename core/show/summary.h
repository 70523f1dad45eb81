// A plan at a glance.
#pragma once

#include <string>

#include "core/plan/plan.h"

namespace piper {

// A table with a line a program (stages, ranks, parameters, forward work as a multiple of the mean,
// peak bytes, tasks of each stream), and the totals.
std::string summary(const Plan& plan, const ModelGraph& model);

}  // namespace piper

// When the tasks of a plan would run if a forward took one unit: what a picture of a plan shows
// along its time axis.
//
// A task starts when the one before it on its stream, and those that it waits for, have ended; a
// send and its receive, or the launches of a collective, start together. A forward takes 1, B 2, BI
// and BW 1, an update 0.1, communication 0.05, scalars and inputs 0.01: the "unit" cost model.
#pragma once

#include <vector>

#include "core/plan/plan.h"

namespace piper {

struct UnitTime {
  double begin = 0, end = 0;
};

// By program and task, of a first period. The plan must be one that the verifier accepts.
std::vector<std::vector<UnitTime>> unit_times(const Plan& plan);

}  // namespace piper

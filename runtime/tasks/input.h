// input: cuts the rank's batch into the rows of a micro-batch.
//
//   before: Rank::batch has the rank's block of every input
//   after:  each written buffer has its micro-batch's rows
#pragma once

#include "runtime/tasks/site.h"

namespace piper {

// Fails with run.batch where the loader has not delivered an input, or not its rows.
MadeTask make_input(const Site& site);

}  // namespace piper

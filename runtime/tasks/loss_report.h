// loss_report: the loss of the global batch, on every rank.
//
//   before: loss_sum holds the token losses of the rank's micro-batches
//   after:  StepScalars hold their sum over all ranks, and the token count; loss_sum is 0
#pragma once

#include "runtime/tasks/site.h"

namespace piper {

MadeTask make_loss_report(const Site& site);

}  // namespace piper

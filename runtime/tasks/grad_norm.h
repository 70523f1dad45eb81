// grad_norm: the 2-norm of all reduced gradients, and whether it is finite; the same bits on every
// rank.
//
//   before: every bucket's gradient is reduced
//   after:  grad_norm and StepScalars hold the norm; where it is not finite, the updates are skipped
//
// Ranks that have reduced the same gradients have the same bits of them, so each adds up the
// squares of its own share: every element counts once. Padding is zero.
#pragma once

#include "runtime/tasks/site.h"

namespace piper {

MadeTask make_grad_norm(const Site& site);

}  // namespace piper

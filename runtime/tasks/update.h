// update: one optimizer step of the rank's part of a bucket.
//
//   before: the part's gradient is reduced, grad_norm is known
//   after:  its parameters, moments and master values are updated, its gradient is 0
//
// The gradient is scaled as clip_scale() says. Where StepScalars::skip is set, as the norm is not
// finite or no label of the global batch counts, only the gradient changes.
#pragma once

#include "runtime/tasks/site.h"

namespace piper {

MadeTask make_update(const Site& site);

}  // namespace piper

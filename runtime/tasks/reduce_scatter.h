// reduce_scatter: sums a bucket's gradients over a group of ranks; each adds its part of the sum to
// what it has.
//
//   before: full_gradient holds what a chain of backward uses made
//   after:  the rank's part of the gradient has grown by the sum over the group
#pragma once

#include "runtime/tasks/site.h"

namespace piper {

MadeTask make_reduce_scatter(const Site& site);

}  // namespace piper

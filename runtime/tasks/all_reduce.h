// all_reduce: sums a bucket's gradients, or a part of them, over all ranks that hold the same.
//
//   before: each has added up its own micro-batches, or its group's
//   after:  all have the same bits of the sum
#pragma once

#include "runtime/tasks/site.h"

namespace piper {

MadeTask make_all_reduce(const Site& site);

}  // namespace piper

// all_reduce: sums a bucket's gradients over all ranks that hold the bucket.
//
//   before: each has added up its own micro-batches     after: all have the same bits of the sum
#pragma once

#include "runtime/tasks/site.h"

namespace piper {

MadeTask make_all_reduce(const Site& site);

}  // namespace piper

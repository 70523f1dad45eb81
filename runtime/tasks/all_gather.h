// all_gather: puts a bucket's parameters together from the parts of a group of ranks.
//
//   before: every rank has its part
//   after:  all have the whole, in `gathered` where the task writes it, else where the bucket is
#pragma once

#include "runtime/tasks/site.h"

namespace piper {

MadeTask make_all_gather(const Site& site);

}  // namespace piper

// token_count: counts the labels of the global batch that are not -100.
//
//   before: the rank's labels are in their buffers, every micro-batch's
//   after:  token_count holds the count over all ranks that compute the loss
#pragma once

#include "runtime/tasks/site.h"

namespace piper {

MadeTask make_token_count(const Site& site);

}  // namespace piper

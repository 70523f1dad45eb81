// forward: runs the regions of a chunk on a micro-batch.
//
//   before: its inputs are in their buffers
//   after:  its outputs are; `saved` holds the graph, where the task writes it (else nothing is
//           kept for a backward pass); the loss has been added to loss_sum
#pragma once

#include "runtime/tasks/site.h"

namespace piper {

MadeTask make_forward(const Site& site);

// recompute: the same on the same inputs, to fill `saved` alone.
//
//   before: the inputs of the forward are still in their buffers, which kept nothing else
//   after:  `saved` holds the graph, bit for bit as if the forward had left it
MadeTask make_recompute(const Site& site);

}  // namespace piper

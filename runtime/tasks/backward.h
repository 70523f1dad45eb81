// backward, backward_input, backward_weight: one call of the autograd engine each.
//
//   before: `saved` holds the chunk's graph, its outputs' gradients are in their buffers; the loss
//           has gradient 1 / (token count of the global batch), 0 where that is 0
//   after:  parameter gradients have been added to the flat buffers (not by backward_input); the
//           gradients of its inputs are in their buffers (not by backward_weight)
//
// Where several chunks read an output, their gradients are added in the order of those chunks. An
// input that the graph does not reach has gradient zero.
#pragma once

#include "runtime/tasks/site.h"

namespace piper {

MadeTask make_backward(const Site& site);
MadeTask make_backward_input(const Site& site);
MadeTask make_backward_weight(const Site& site);

}  // namespace piper

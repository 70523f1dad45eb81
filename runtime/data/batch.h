// What the loader gives one rank for one step.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>

#include "core/base/ids.h"

namespace piper {

// For each input of the model, the rank's block of rows. Only inputs that the rank's program reads
// need to be there.
using Batch = std::map<ValueId, at::Tensor>;

}  // namespace piper

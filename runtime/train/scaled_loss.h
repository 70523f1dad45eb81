// For tests: gradients that are wrong by a factor.
#pragma once

#include <memory>

#include "runtime/model/build.h"

namespace piper {

// Multiplies every gradient that comes from the model's loss by `*factor`, as it is then.
void scale_gradients(LiveModel& model, std::shared_ptr<const double> factor);

}  // namespace piper

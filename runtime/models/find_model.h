// Which function builds the job's model: one of ours by name, or a user's from a shared library.
#pragma once

#include "core/base/diagnostic.h"
#include "core/config/config.h"
#include "runtime/model/build.h"

namespace piper {

// Opens [model] library where the job names one (RTLD_NOW | RTLD_LOCAL, and never closes it). Any
// thread.
Expected<ModelFunction> find_model(const Config& config);

// Builds the job's model (runtime/model/build.h). Any thread.
Expected<LiveModel> build_model(const Config& config, bool measure);

}  // namespace piper

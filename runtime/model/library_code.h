// A model library's code, while it runs.
#pragma once

#include <string>

#include "core/base/foreign_code.h"
#include "core/config/config.h"

namespace piper {

// `in`: "build", "static constructors".
inline ForeignCode::Names library_code(const Config& config, const char* in) {
  return {"model library '" + config.model.library + "'", in, "model.crashed", "model.exited"};
}

}  // namespace piper

// All ranks are threads of this process, on its CPU.
#pragma once

#include <memory>

#include "core/runtime_interface.h"
#include "runtime/backend/backend.h"

namespace piper {

std::unique_ptr<Backend> make_local_backend(const Job& job);

}  // namespace piper

// Settings that the plan of a job shows to have no effect.
#pragma once

#include "core/base/diagnostic.h"
#include "core/config/config.h"
#include "core/plan/plan.h"

namespace piper {

// Remarks (config.no_effect). Call it after planning.
Diagnostics plan_remarks(const Config& config, const Plans& plans);

}  // namespace piper

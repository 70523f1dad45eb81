#pragma once

#include "core/verify/report.h"

namespace piper {

// Adds a note that names the strategy that the task is from, where it is one's.
void note_strategy(Diagnostic& diagnostic, const Plan& plan, TaskPlace at);

}  // namespace piper

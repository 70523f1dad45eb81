// From a task of the plan to what runs it: the only place that looks at an op.
#pragma once

#include "runtime/tasks/site.h"

namespace piper {

// run.plan: this runtime has no such task, or the plan gives it other buffers than it needs.
MadeTask make_task(const Site& site);

}  // namespace piper

// From a task of the plan to what runs it. The list in make_task.cc is the registry of operations
// that the runtime has.
#pragma once

#include "runtime/tasks/site.h"

namespace piper {

bool has_task(Op op);

// run.plan: this runtime has no such task, or the plan gives it other buffers than it needs.
MadeTask make_task(const Site& site);

}  // namespace piper

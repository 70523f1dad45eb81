// Jobs and the memory of a rank: what would make a job fit, and the largest micro-batch that does.
// Every answer is the peak of a plan that was made for it.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/diagnostic.h"
#include "core/cli/prepare.h"

namespace piper {

// Adds to a refusal (plan.capacity) what the job would need with more micro-batches, with
// recomputation and with a higher value of each option that saves memory, as plugins' manifests
// say, a note each. What the planner refuses is left out; stops after about a second. Other errors
// are left as they are.
void suggest_what_fits(Diagnostics& refused, const CheckedJob& job, const ModelGraph& model);

// The most rows a micro-batch with which no rank needs more than [memory] capacity, as text: rows,
// the job's global_batch_size then, the peaks, and what one row more would need. Errors:
// memory.no_capacity; plan.capacity where one row is too much.
Expected<std::string> largest_microbatch(const CheckedJob& job, const ModelGraph& model);

}  // namespace piper

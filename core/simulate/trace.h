// A run as a trace that Perfetto and chrome://tracing read: a process for each place, a thread for
// each of its streams, an event for each task, an arrow for each message. Predicted and measured
// runs are written alike, so that they lie one over the other.
#pragma once

#include <iosfwd>
#include <vector>

#include "core/ir/model_graph.h"
#include "core/plan/plan.h"
#include "core/simulate/simulate.h"

namespace piper {

// `microseconds`: how many a tick is. `in_units`: they stand for another unit, which the trace
// says. Chrome's trace event format, JSON object form.
void write_trace(std::ostream& out, const Plan& plan, const ModelGraph& model, const Spans& times,
                 double microseconds, bool in_units = false);

}  // namespace piper

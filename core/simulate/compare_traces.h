// A predicted and a measured trace of one plan, side by side.
#pragma once

#include <string>
#include <string_view>

#include "core/base/diagnostic.h"

namespace piper {

// What a trace says: text and the file that it is from, for messages.
struct TraceText {
  std::string_view text, file;
};

// A table with a line for each kind of task (how many, what one took on average in both, the error
// of the prediction), and one for the whole step. Errors: trace.file (no trace of ours, with line
// and column where it is no JSON), trace.differ (traces of different plans, with the first tasks
// that one of them lacks), trace.units (one in units, the other in milliseconds).
Expected<std::string> compare_traces(const TraceText& predicted, const TraceText& measured);

}  // namespace piper

// When the tasks of one period ran.
#pragma once

#include <cstdint>
#include <vector>

namespace piper {

// In the caller's unit: nanoseconds since the start of the step, or ticks of a simulation.
struct TimeSpan {
  std::uint64_t begin = 0, end = 0;
};

// By program (of a run: by rank) and task.
using Spans = std::vector<std::vector<TimeSpan>>;

}  // namespace piper

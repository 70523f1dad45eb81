// What a simulated step says: how long, who idles and because of whom, what is exposed, what is
// held.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "core/ir/model_graph.h"
#include "core/plan/plan.h"
#include "core/simulate/simulate.h"

namespace piper {

struct TaskOf {
  std::uint32_t program = 0;
  TaskId task = none<TaskId>();
  bool operator==(const TaskOf&) const = default;
};

// A place's compute stream is idle.
struct Gap {
  std::uint64_t begin = 0, end = 0;
  TaskId next = none<TaskId>();  // the computation after it; none: the step is over here
  std::uint64_t exposed = 0;     // of it, what communication on the way to `next` takes
  // Whose end let `next` start, at the beginning of the chain: the last computation elsewhere, or
  // the transfer where there is none.
  TaskOf blame;

  std::uint64_t length() const { return end - begin; }
};

struct ProgramReport {
  std::uint64_t busy = 0;  // computing, updates included
  std::uint64_t exposed = 0;
  double bubble = 0;  // 1 - busy / makespan
  std::int64_t peak_bytes =
      0;  // live at once on the first rank in this run; at most the plan's bound
  std::int64_t bound_bytes = 0;  // the plan's
  std::vector<Gap> gaps;         // in time
};

struct Analysis {
  std::uint64_t makespan = 0;
  double bubble = 0;  // 1 - busy of all ranks / (ranks x makespan)
  std::vector<ProgramReport> programs;
  std::vector<TaskOf> critical_path;  // each starts when the one before it ends; what takes no time
                                      // is left out
};

Analysis analyse(const Plan& plan, const ModelGraph& model, const Simulation& run);

// What one number of a simulation is.
struct TimeUnit {
  double ticks = 1;  // in one of `name`
  std::string name;  // "units", "ms"
};

// For people, and for programs.
std::string describe(const Plan& plan, const ModelGraph& model, const Simulation& run,
                     const Analysis& analysis, const TimeUnit& unit);
void write_json(std::ostream& out, const Plan& plan, const ModelGraph& model, const Simulation& run,
                const Analysis& analysis, const TimeUnit& unit);

}  // namespace piper

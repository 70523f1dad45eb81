// What one step of a run took, for files: the trace that [profiling] asks for, and measured costs.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/diagnostic.h"
#include "core/runtime_interface.h"
#include "runtime/exec/engine.h"

namespace piper {

class Profile {
 public:
  // A name that cannot be written stops the job before it starts: error profiling.unwritable.
  static Expected<Profile> open(const Job& job, const std::string& costs_file);

  // The last step; none where nothing is asked for.
  bool wants(std::int64_t step) const;

  // Writes both files. `result` was recorded.
  Status write(const Job& job, const StepResult& result);

 private:
  std::string trace_file_, costs_file_;
  std::int64_t step_ = 0;
};

}  // namespace piper

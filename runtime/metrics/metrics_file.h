// [metrics] file: one JSON object a step, written as the step ends.
#pragma once

#include <optional>
#include <string>

#include "core/base/diagnostic.h"
#include "core/base/log_file.h"
#include "runtime/metrics/step_record.h"

namespace piper {

// {"step":1,"loss":...,"held_out_loss":...,"grad_norm":...,"lr":...,"tokens_per_second":...,
//  "step_seconds":...,"bubble":...,"peak_bytes":[...],"planned_peak_bytes":[...]}. A loss that the
// step has not and what is not finite is null: JSON has no word for it. The held-out loss is there
// after an evaluation alone.
std::string to_json(const StepRecord& record);

class MetricsFile {
 public:
  // Starts `path` anew, as LogFile does: what was there is kept as FILE.1. "" = no file.
  static Expected<MetricsFile> open(const std::string& path, const Location& where);

  // A write that fails (a full disk) is an error, and leaves whole lines.
  Status write(const StepRecord& record);

  // All lines are on disk.
  Status flush();

 private:
  std::optional<LogFile> lines_;
};

}  // namespace piper

// [metrics] file: one JSON object a step, written as the step ends.
#pragma once

#include <fstream>
#include <string>

#include "core/base/diagnostic.h"
#include "runtime/metrics/step_record.h"

namespace piper {

// {"step":1,"loss":...,"grad_norm":...,"lr":...,"tokens_per_second":...,"step_seconds":...,"bubble":...,
//  "peak_bytes":[...],"planned_peak_bytes":[...]}. What is not finite is null: JSON has no word for
//  it.
std::string to_json(const StepRecord& record);

class MetricsFile {
 public:
  // Starts `path` anew; "" = no file.
  static Expected<MetricsFile> open(const std::string& path, const Location& where);

  // A write that fails (a full disk) is an error.
  Status write(const StepRecord& record);

 private:
  std::string path_;
  std::ofstream stream_;
};

}  // namespace piper

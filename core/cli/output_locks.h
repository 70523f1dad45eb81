// What a job that trains keeps other jobs from writing.
#pragma once

#include <vector>

#include "core/base/file_lock.h"
#include "core/base/output_file.h"
#include "core/runtime_interface.h"

namespace piper {

// From before the first step to the end: the folder of checkpoint.last_save_path, and the files of
// profiling.trace, --costs and --save-gradients. Devices and pipes are not locked. The metrics are
// locked by who writes them (LogFile). Taken, the folders are there.
class OutputLocks {
 public:
  // Error file.in_use, which names the other process; output.unwritable.
  static Expected<OutputLocks> take(const Config& config, const TrainOptions& options);

 private:
  std::vector<FolderLock> folders_;
  std::vector<OutputFile> files_;  // never written: each stands beside its target and is locked
};

}  // namespace piper

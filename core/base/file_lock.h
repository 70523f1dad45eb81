// Locks of the kernel (flock) on outputs, so that two jobs do not write one. A lock is gone when
// its process has ended, however that happens, and is not left to programs that it starts; a child
// that is forked and executes nothing keeps it alive.
#pragma once

#include <optional>
#include <string>

#include "core/base/diagnostic.h"
#include "core/base/folders.h"
#include "core/base/output_file.h"

namespace piper {

// A folder that one process at a time writes. The lock is on the folder itself, so nothing is in
// the folder that was not there. Where the file system locks files only (NFS), it is on a hidden
// file in the folder, `.in_use.piper-PID-N`, which is removed with the object.
class FolderLock {
 public:
  // `folder` is there. Refused with file.in_use, naming the holder. A file system without any locks
  // refuses nothing.
  static Expected<FolderLock> take(const std::string& folder, const OutputOptions& options = {});

  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&& other) noexcept;
  ~FolderLock();

 private:
  FolderLock() = default;

  int descriptor_ = -1;
  std::optional<OutputFile> file_;
};

// Who has the lock of the file or folder on which `descriptor` is open: `process 812 (piper train
// job.toml), started 2026-05-01 09:30:00`. Another user's process may be without a command, and one
// of another machine is `another process`.
std::string lock_holder(int descriptor);

Diagnostic in_use(const std::string& path, const std::string& holder, const OutputOptions& options);

}  // namespace piper

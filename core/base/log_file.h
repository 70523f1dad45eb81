// A file that grows by a line at a time, such as the metrics of a run.
#pragma once

#include <string>
#include <string_view>

#include "core/base/diagnostic.h"
#include "core/base/folders.h"

namespace piper {

class LogFile {
 public:
  // Starts `path` anew and makes the folders that are missing. What was there is kept as FILE.1,
  // what was FILE.1 as FILE.2, and so on: none is removed. An empty file is taken as it is. A link
  // stays; all of this is beside its target. A device, a pipe or one of the process's own
  // descriptors is written through.
  //
  // The file is locked while it is open (core/base/file_lock.h): where another process has the
  // lock, nothing is touched, error file.in_use.
  static Expected<LogFile> create(const std::string& path, OutputOptions options = {});

  LogFile(LogFile&& other) noexcept;
  LogFile& operator=(LogFile&& other) noexcept;
  ~LogFile();

  // Appends a line, which has no line break, in one call of the system: a process that is killed
  // leaves whole lines. So does an error: what could be written of the line is taken back.
  Status write_line(std::string_view line);

  // All lines are on disk. After a power failure before this, the last ones may be
  // missing, cut or zeros.
  Status flush();

 private:
  LogFile() = default;
  Status open(const std::string& target, bool* ready);

  OutputOptions options_;
  std::string path_;
  int descriptor_ = -1;
  bool through_ = false;
};

}  // namespace piper

// The bytes of a data file, read while a job runs.
//
// A file that is written to or cut short while the job uses it is an error with its name: its rows
// are no longer those that were counted. One that is removed, or replaced by renaming another to
// its name, does no harm: what was found at the start is read to the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/diagnostic.h"
#include "runtime/data/files.h"

namespace piper {

class DataFile {
 public:
  // Keeps it open. It must still be what find_files() saw: data.changed. Errors of opening point at
  // `where`.
  static Expected<DataFile> open(const SourceFile& file, const Location& where);
  // Reads it into memory and closes it: whatever happens to it later does no harm.
  static Expected<DataFile> load(const SourceFile& file, const Location& where);

  DataFile(DataFile&& other) noexcept;
  DataFile& operator=(DataFile&& other) noexcept;
  ~DataFile();

  const SourceFile& source() const { return source_; }

  // Bytes offset .. offset + count - 1, which are in the file. Any thread. Errors: data.changed,
  // data.unreadable.
  Status read(std::uint64_t offset, std::size_t count, char* to) const;

 private:
  explicit DataFile(SourceFile source) : source_(std::move(source)) {}
  Status unchanged() const;

  SourceFile source_;
  int descriptor_ = -1;  // -1: in memory
  std::string memory_;
};

// All of them, each kept open. The process may have so many files open as its hard limit says (the
// soft limit is raised); of more files than that, the smallest are read into memory.
Expected<std::vector<DataFile>> open_files(const std::vector<SourceFile>& files,
                                           const Location& where);

}  // namespace piper

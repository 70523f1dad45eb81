// Finds the documents of a data set: the files that [training] dataset_path names.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/diagnostic.h"

namespace piper {

// A regular, readable file, as it was when it was found.
struct SourceFile {
  std::string path;  // canonical
  std::uint64_t bytes = 0;
  std::int64_t time = 0;  // of its last change, nanoseconds since 1970
  std::uint64_t device = 0, inode = 0;

  SourceFile() = default;
  SourceFile(std::string at, const struct stat& status);
  bool operator==(const SourceFile&) const = default;
};

// `entries` are files, folders (searched to the bottom, hidden names skipped) and globs. Each file
// comes once, under its canonical path, however many entries or symbolic links lead to it; the
// order is that of the paths' bytes. An entry that names nothing, no file at all, and a file that
// cannot be read are errors that point at `where`.
Expected<std::vector<SourceFile>> find_files(const std::vector<std::string>& entries,
                                             const Location& where);

}  // namespace piper

// Finds the documents of a data set: the files that [training] dataset_path names.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/diagnostic.h"

namespace piper {

// A regular, readable file.
struct SourceFile {
  std::string path;         // canonical
  std::uint64_t bytes = 0;  // when it was found
};

// `entries` are files, folders (searched to the bottom, hidden names skipped) and globs. Each file
// comes once, under its canonical path, however many entries or symbolic links lead to it; the
// order is that of the paths' bytes. An entry that names nothing, no file at all, and a file that
// cannot be read are errors that point at `where`.
Expected<std::vector<SourceFile>> find_files(const std::vector<std::string>& entries,
                                             const Location& where);

// The bytes of a file: read, or mapped where it is large. They stay until the object goes.
class FileBytes {
 public:
  static Expected<FileBytes> open(const SourceFile& file, const Location& where);

  FileBytes() = default;
  FileBytes(FileBytes&& other) noexcept;
  FileBytes& operator=(FileBytes&& other) noexcept;
  ~FileBytes();

  std::string_view text() const { return mapped_.empty() ? std::string_view(read_) : mapped_; }

 private:
  std::string read_;
  std::string_view mapped_;
};

}  // namespace piper

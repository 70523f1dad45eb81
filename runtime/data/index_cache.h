// Indexes of large files of rows, kept between runs: a second start does not read the file.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/data/row_index.h"

namespace piper {

// One file's place in the cache folder, below rows/. What is found there is used where the file is
// the same one (path, size, time, inode), the model asks for the same fields, and the checksum is
// right. Any number of processes.
class IndexCache {
 public:
  IndexCache(const SourceFile& file, const std::vector<RowColumn>& columns);

  std::optional<RowIndex> load() const;

  // A failure costs only time, and is not reported. Left out are files that are indexed in no time,
  // and those that changed in the last seconds: a further change might leave size and time as they
  // are.
  void store(const RowIndex& index) const;

  const std::filesystem::path& path() const { return path_; }  // "" = there is no cache folder

 private:
  SourceFile file_;
  std::size_t columns_;
  std::string key_;  // all that the index depends on
  std::filesystem::path path_;
};

}  // namespace piper

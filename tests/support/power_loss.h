// What a power failure may leave of a folder: the calls that tests/support/faulty_files.h recorded,
// replayed on a disk that keeps nothing but what was flushed.
//
// The disk promises no more than POSIX does. Bytes that were written are there after fsync of the
// file; before that the file may be as it was at its last fsync, or have some of them, or zeros in
// their place. Names that were made, renamed or removed are so after fsync of their folder; before
// that each of these calls may have reached the disk or not, whatever became of the others. A
// rename happens whole or not at all.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace piper::testing {

// A folder's files with their bytes, by path; a folder is a path that ends with '/'.
using Files = std::map<std::string, std::string>;
Files look(const std::string& folder);

// One record of a log.
struct FileCall {
  long number = 0;
  std::string what, path, to;
  int descriptor = -1;
  bool truncated = false;
  std::size_t offset = 0;  // of truncate: the length
  std::string bytes;
};
std::vector<FileCall> read_calls(const std::string& log);
std::string to_string(const FileCall& call);

inline constexpr std::size_t kNoSync = static_cast<std::size_t>(-1);

// Calls `see` with every state that a failure may leave after the first `count` calls, each once.
// `left_out` is the index of a sync that is taken as if it were not there.
void after_power_loss(const Files& before, const std::vector<FileCall>& calls, std::size_t count,
                      const std::function<void(const Files&)>& see, std::size_t left_out = kNoSync);

}  // namespace piper::testing

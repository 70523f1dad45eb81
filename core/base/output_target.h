// Where the bytes for a named output go: behind links, and under which name until it is whole.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/base/folders.h"

namespace piper {

// Where bytes for a path go.
struct OutputTarget {
  std::string path;         // behind the links
  bool through = false;     // not a file: written as it is
  int own_descriptor = -1;  // of this process, that the path is a name of
  bool exists = false;      // as a file
  mode_t mode = 0;          // of that
};

// Follows links, but one that the options want replaced. An error where it is a folder or may not
// be written.
Expected<OutputTarget> find_target(const std::string& path, const OutputOptions& options);

// Opens a target that is written through: a descriptor, to be closed. `path` is for errors. Blocks
// at a pipe without a reader.
Expected<int> open_through(const OutputTarget& target, const std::string& path,
                           const OutputOptions& options);

// The path of another name in the folder of `path`.
std::string beside(const std::string& path, const std::string& name);

// `.NAME.piper-`; long names are cut, since the whole must not be longer than file systems allow.
std::string staging_prefix(const std::string& target);

// The staging files of this target, of every process, as paths.
std::vector<std::string> staging_files(const std::string& target);

}  // namespace piper

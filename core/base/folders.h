// Folders that are on disk once they are made, and what is said of a file that cannot be written.
#pragma once

#include <string>

#include "core/base/diagnostic.h"

namespace piper {

struct OutputOptions {
  std::string code = "file.write";  // of errors
  Location where = {};              // what named the file: a key of the job, an option
  // A link at the path is replaced. Otherwise it stays, and its target is replaced.
  bool replace_link = false;
  // Refused with file.in_use where some OutputFile of this path is open, in whatever process.
  bool exclusive = false;
};

// Makes a folder, and those above it, that are missing; each is on disk.
Status make_folder(const std::string& folder, const OutputOptions& options = {});
Status make_parents(const std::string& path, const OutputOptions& options = {});

// Names in this folder that were made, renamed or removed are on disk. File systems that cannot
// flush a folder are taken at their word.
Status flush_folder(const std::string& folder, const OutputOptions& options = {});

// The folder of a path's last name: "." where it has none.
std::string parent_folder(const std::string& path);

// `expected a file that can be written, got 'PATH': no space left on device`.
Diagnostic unwritable(const std::string& path, int system_error, const OutputOptions& options);

// The system's words for an errno, in lower case: "no space left on device".
std::string system_text(int system_error);

}  // namespace piper

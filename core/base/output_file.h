// Files that the program writes: the old one or the new one is there, never a part of it, whatever
// stops the process or the machine.
//
//   PIPER_ASSIGN(OutputFile file, OutputFile::create("out/trace.json"));
//   PIPER_TRY(file.write(text));
//   PIPER_TRY(file.commit());
//
// Bytes go to a staging file beside the target, which is flushed, renamed to the target, and the
// folder is flushed. Several files that belong together are all staged before the first is
// published.
//
// A staging file is called `.NAME.piper-PID-N` and is locked (flock) as long as its process has it
// open. It is removed with its object. What a killed process leaves is removed by the next
// OutputFile of that name.
//
// Errors have the code and the place of the options, the file's name and the system's reason.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/base/diagnostic.h"
#include "core/base/folders.h"

namespace piper {

class OutputFile {
 public:
  // Makes the folders that are missing. The new file has the mode of the one that it replaces, or
  // what the umask leaves. A device, a pipe or one of the process's own descriptors (/dev/stdout)
  // is opened and written through, without a staging file and for any number of processes at once.
  // A pipe without a reader blocks.
  static Expected<OutputFile> create(const std::string& path, OutputOptions options = {});

  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;
  ~OutputFile();

  // Appends all of it: one system call where the system takes it whole.
  Status write(std::string_view bytes);
  Status write(const void* bytes, std::size_t count);

  // All that was written is on disk, under the staging name. No write after it.
  Status stage();

  // The target is the new file. After stage().
  Status publish();

  // stage(), publish(), and the folder is on disk.
  Status commit();

  const std::string& path() const { return path_; }      // as it was given
  const std::string& target() const { return target_; }  // what is replaced: behind every link

 private:
  OutputFile() = default;
  friend Status check_writable(const std::string& path, const OutputOptions& options);
  void discard();
  Status open_staging();
  Status be_alone() const;

  OutputOptions options_;
  std::string path_, target_;
  std::string staging_;  // "": written through, or published
  int descriptor_ = -1;
};

// create(), write() and commit().
Status write_file(const std::string& path, std::string_view bytes, OutputOptions options = {});

// Whether OutputFile::create(path) would do, as far as that can be seen; leaves nothing behind, and
// opens no device.
Status check_writable(const std::string& path, const OutputOptions& options);

}  // namespace piper

// Loads a job from a text, for tests.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/config/config.h"

namespace piper::testing {

// A file of this process, gone at the end of the scope.
class JobFile {
 public:
  explicit JobFile(const std::string& text)
      : path_(std::filesystem::temp_directory_path() /
              ("piper_job_" + std::to_string(::getpid()) + ".toml")) {
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~JobFile() { std::filesystem::remove(path_); }
  JobFile(const JobFile&) = delete;
  JobFile& operator=(const JobFile&) = delete;

  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

inline Expected<Config> load(const std::string& text,
                             const std::vector<std::string>& overrides = {}) {
  const JobFile file(text);
  return load_config(file.path(), overrides);
}

// The printed errors, with the file called job.toml; "" when there are none.
inline std::string errors(const std::string& text, const std::vector<std::string>& overrides = {}) {
  const JobFile file(text);
  const auto config = load_config(file.path(), overrides);
  std::string printed = config ? "" : to_string(config.error());
  for (std::size_t at = 0; (at = printed.find(file.path(), at)) != std::string::npos;) {
    printed.replace(at, file.path().size(), "job.toml");
  }
  return printed;
}

}  // namespace piper::testing

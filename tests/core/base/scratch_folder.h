// A folder of a test's own, with the looks at it that tests of files need.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "core/base/diagnostic.h"

namespace piper::testing {

class ScratchFolder : public ::testing::Test {
 protected:
  explicit ScratchFolder(const std::string& name)
      : folder_(std::filesystem::temp_directory_path() /
                ("piper_" + name + '_' + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~ScratchFolder() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ / name; }
  void put(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  std::string get(const std::string& name) const {
    std::ifstream stream(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  std::set<std::string> names(const std::string& folder = "") const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / folder)) {
      names.insert(entry.path().filename());
    }
    return names;
  }
  mode_t mode(const std::string& name) const {
    struct stat found {};
    ::stat(path(name).c_str(), &found);
    return found.st_mode & 07777;
  }

  std::filesystem::path folder_;
};

inline std::string text_of(const Status& status) {
  return status ? "ok" : to_string(status.error());
}
template <typename T>
std::string text_of(const Expected<T>& value) {
  return value ? "ok" : to_string(value.error());
}

using Names = std::set<std::string>;

}  // namespace piper::testing

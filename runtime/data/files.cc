#include "runtime/data/files.h"

#include <fcntl.h>
#include <glob.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

namespace piper {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMapFrom = 1 << 20;  // smaller files are read: a process has few mappings

bool is_hidden(const fs::path& path) {
  return path.filename().string().starts_with('.');
}

// Adds the file at `path`, or the files below the folder at `path`.
Status collect(const fs::path& path, const Location& where, std::vector<std::string>& found) {
  std::error_code failure;
  const fs::file_status status = fs::status(path, failure);
  if (fs::is_regular_file(status)) {
    const fs::path canonical = fs::canonical(path, failure);
    if (failure) {
      return fail(error("data.unreadable", path.string() + ": " + failure.message(), where));
    }
    found.push_back(canonical.string());
    return {};
  }
  if (fs::is_directory(status)) {
    std::vector<fs::path> entries;
    for (fs::directory_iterator at(path, failure), end; !failure && at != end;
         at.increment(failure)) {
      entries.push_back(at->path());
    }
    if (failure) {
      return fail(error("data.unreadable", path.string() + ": " + failure.message(), where));
    }
    for (const fs::path& entry : entries) {
      // A link to a folder is not followed, so that a loop of links ends.
      const bool link_to_folder = fs::is_symlink(entry) && fs::is_directory(entry, failure);
      if (!is_hidden(entry) && !link_to_folder) {
        PIPER_TRY(collect(entry, where, found));
      }
    }
    return {};
  }
  if (!fs::exists(status)) {
    return fail(error("data.no_files", "no file or folder '" + path.string() + "'", where));
  }
  return {};  // a device, socket or pipe: not data
}

std::vector<std::string> expand(const std::string& pattern) {
  glob_t matches{};
  std::vector<std::string> paths;
  if (glob(pattern.c_str(), GLOB_NOSORT, nullptr, &matches) == 0) {
    paths.assign(matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
  }
  globfree(&matches);
  return paths;
}

Expected<SourceFile> measure(const std::string& path, const Location& where) {
  struct stat status {};
  if (access(path.c_str(), R_OK) != 0 || stat(path.c_str(), &status) != 0) {
    return fail(error("data.unreadable", path + ": " + std::strerror(errno), where));
  }
  return SourceFile{path, static_cast<std::uint64_t>(status.st_size)};
}

}  // namespace

Expected<std::vector<SourceFile>> find_files(const std::vector<std::string>& entries,
                                             const Location& where) {
  if (entries.empty()) {
    return fail(error("data.no_files",
                      "training.dataset_path is empty: expected files, folders or globs", where));
  }
  std::vector<std::string> paths;
  for (const std::string& entry : entries) {
    std::error_code failure;
    const bool is_pattern = entry.find_first_of("*?[") != std::string::npos;
    if (!is_pattern || fs::exists(entry, failure)) {
      PIPER_TRY(collect(entry, where, paths));
      continue;
    }
    const std::vector<std::string> matches = expand(entry);
    if (matches.empty()) {
      return fail(error("data.no_files", "no file matches '" + entry + "'", where));
    }
    for (const std::string& match : matches) {
      if (fs::exists(match, failure)) {  // not a link to nothing
        PIPER_TRY(collect(match, where, paths));
      }
    }
  }
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  if (paths.empty()) {
    return fail(error("data.no_files",
                      "no files in '" + entries.front() + "'" +
                          (entries.size() > 1 ? " and the other paths of the data set" : ""),
                      where));
  }
  std::vector<SourceFile> files;
  for (const std::string& path : paths) {
    PIPER_ASSIGN(SourceFile file, measure(path, where));
    files.push_back(std::move(file));
  }
  return files;
}

Expected<FileBytes> FileBytes::open(const SourceFile& file, const Location& where) {
  FileBytes bytes;
  if (file.bytes < kMapFrom) {
    bytes.read_.resize(file.bytes);
    std::ifstream stream(file.path, std::ios::binary);
    stream.read(bytes.read_.data(), static_cast<std::streamsize>(file.bytes));
    if (stream.gcount() != static_cast<std::streamsize>(file.bytes)) {
      return fail(error("data.unreadable",
                        file.path + ": expected " + std::to_string(file.bytes) + " bytes, read " +
                            std::to_string(stream.gcount()),
                        where));
    }
    return bytes;
  }
  const int descriptor = ::open(file.path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    return fail(error("data.unreadable", file.path + ": " + std::strerror(errno), where));
  }
  void* start = mmap(nullptr, file.bytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
  const int failure = errno;
  close(descriptor);
  if (start == MAP_FAILED) {
    return fail(error("data.unreadable", file.path + ": " + std::strerror(failure), where));
  }
  bytes.mapped_ = {static_cast<const char*>(start), file.bytes};
  return bytes;
}

FileBytes::FileBytes(FileBytes&& other) noexcept
    : read_(std::move(other.read_)), mapped_(std::exchange(other.mapped_, {})) {}

FileBytes& FileBytes::operator=(FileBytes&& other) noexcept {
  std::swap(read_, other.read_);
  std::swap(mapped_, other.mapped_);
  return *this;
}

FileBytes::~FileBytes() {
  if (!mapped_.empty()) {
    munmap(const_cast<char*>(mapped_.data()), mapped_.size());
  }
}

}  // namespace piper

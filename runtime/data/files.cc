#include "runtime/data/files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "runtime/data/glob.h"

namespace piper {
namespace {

namespace fs = std::filesystem;

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
    const std::string looked =
        path.is_absolute() ? "" : ", looked for from the folder that piper was started in";
    return fail(
        error("data.no_files", "no file or folder '" + path.string() + "'" + looked, where));
  }
  return {};  // a device, socket or pipe: not data
}

Expected<SourceFile> measure(const std::string& path, const Location& where) {
  struct stat status {};
  if (access(path.c_str(), R_OK) != 0 || stat(path.c_str(), &status) != 0) {
    return fail(error("data.unreadable", path + ": " + std::strerror(errno), where));
  }
  return SourceFile(path, status);
}

}  // namespace

SourceFile::SourceFile(std::string at, const struct stat& status)
    : path(std::move(at)),
      bytes(static_cast<std::uint64_t>(status.st_size)),
      time(status.st_mtim.tv_sec * std::int64_t{1000000000} + status.st_mtim.tv_nsec),
      device(status.st_dev),
      inode(status.st_ino) {}

Expected<std::vector<SourceFile>> find_files(const std::vector<std::string>& entries,
                                             const Location& where) {
  if (entries.empty()) {
    return fail(error("data.no_files",
                      "training.dataset_path is empty: expected files, folders or globs", where));
  }
  std::vector<std::string> paths;
  for (const std::string& entry : entries) {
    std::error_code failure;
    if (!is_glob(entry) || fs::exists(entry, failure)) {
      PIPER_TRY(collect(entry, where, paths));
      continue;
    }
    PIPER_ASSIGN(const std::vector<std::string> matches, expand_glob(entry, where));
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

}  // namespace piper

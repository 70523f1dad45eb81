#include "core/base/output_target.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "core/base/system_call.h"

namespace piper {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMark = ".piper-";  // between a staging file's target and its process

std::string last_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

// N where `link` is /proc/self/fd/N under whatever name, else -1.
int own_descriptor(const std::string& link) {
  std::error_code failed;
  const fs::path folder = fs::canonical(parent_folder(link), failed);
  const std::string name = last_name(link);
  const bool number =
      !name.empty() && name.size() < 8 &&
      std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  return !failed && number && folder == "/proc/" + std::to_string(::getpid()) + "/fd"
             ? std::stoi(name)
             : -1;
}

Expected<std::string> read_link(const std::string& link, const OutputOptions& options) {
  std::error_code failed;
  const fs::path to = fs::read_symlink(link, failed);
  if (failed) {
    return fail(unwritable(link, failed.value(), options));
  }
  return to.is_absolute() ? to.string() : beside(link, to.string());
}

bool is_staging_name(std::string_view name, std::string_view prefix) {
  return name.starts_with(prefix) && name.size() > prefix.size() &&
         name.find_first_not_of("0123456789-", prefix.size()) == std::string_view::npos;
}

}  // namespace

std::string beside(const std::string& path, const std::string& name) {
  const std::string folder = parent_folder(path);
  return folder == "." && path.find('/') == std::string::npos ? name
         : folder == "/"                                      ? folder + name
                                                              : folder + '/' + name;
}

Expected<OutputTarget> find_target(const std::string& path, const OutputOptions& options) {
  constexpr int kMostLinks = 40;  // as many as Linux follows
  OutputTarget target;
  target.path = path;
  for (int links = 0; links <= kMostLinks; ++links) {
    const std::string name = last_name(target.path);
    if (name.empty() || name == "." || name == "..") {
      return fail(unwritable(path, EISDIR, options));
    }
    struct stat found {};
    if (::lstat(target.path.c_str(), &found) != 0) {
      if (errno == ENOENT) {
        return target;
      }
      return fail(unwritable(path, errno, options));
    }
    if (S_ISDIR(found.st_mode)) {
      return fail(unwritable(path, EISDIR, options));
    }
    if (S_ISLNK(found.st_mode) && options.replace_link) {
      return target;
    }
    if (!S_ISLNK(found.st_mode)) {
      if (::faccessat(AT_FDCWD, target.path.c_str(), W_OK, AT_EACCESS) != 0) {
        return fail(unwritable(path, errno, options));
      }
      target.through = !S_ISREG(found.st_mode);
      target.exists = S_ISREG(found.st_mode);
      target.mode = found.st_mode & 0777;
      return target;
    }
    target.own_descriptor = own_descriptor(target.path);
    if (target.own_descriptor >= 0) {
      target.through = true;
      return target;
    }
    PIPER_ASSIGN(target.path, read_link(target.path, options));
  }
  return fail(unwritable(path, ELOOP, options));
}

Expected<int> open_through(const OutputTarget& target, const std::string& path,
                           const OutputOptions& options) {
  const int descriptor =
      target.own_descriptor >= 0
          ? ::fcntl(target.own_descriptor, F_DUPFD_CLOEXEC, 3)
          : uninterrupted(
                [&] { return ::open(target.path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY); });
  if (descriptor < 0) {
    return fail(unwritable(path, errno, options));
  }
  return descriptor;
}

std::string staging_prefix(const std::string& target) {
  constexpr std::size_t kMostOfName = 200;
  return '.' + last_name(target).substr(0, kMostOfName) + std::string(kMark);
}

std::vector<std::string> staging_files(const std::string& target) {
  const std::string prefix = staging_prefix(target);
  std::vector<std::string> files;
  std::error_code failed;
  for (fs::directory_iterator entry(parent_folder(target), failed), end; !failed && entry != end;
       entry.increment(failed)) {
    if (is_staging_name(last_name(entry->path().native()), prefix)) {
      files.push_back(entry->path().native());
    }
  }
  return files;
}

}  // namespace piper

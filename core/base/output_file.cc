#include "core/base/output_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace piper {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMark = ".piper-";  // between a staging file's target and its process

// Calls again while a signal interrupts.
template <typename Call>
auto uninterrupted(Call call) -> decltype(call()) {
  for (;;) {
    if (const auto result = call(); result != -1 || errno != EINTR) {
      return result;
    }
  }
}

std::string last_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

std::string beside(const std::string& path, const std::string& name) {
  const std::string folder = parent_folder(path);
  return folder == "." && path.find('/') == std::string::npos ? name
         : folder == "/"                                      ? folder + name
                                                              : folder + '/' + name;
}

// Where bytes for a path go.
struct Target {
  std::string path;         // behind the links
  bool through = false;     // not a file: written as it is
  int own_descriptor = -1;  // of this process, that the path is a name of
  bool exists = false;      // as a file
  mode_t mode = 0;          // of that
};

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

Expected<Target> find_target(const std::string& path, const OutputOptions& options) {
  constexpr int kMostLinks = 40;  // as many as Linux follows
  Target target;
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

// `.NAME.piper-`; long names are cut, since the whole must not be longer than file systems allow.
std::string staging_prefix(const std::string& target) {
  constexpr std::size_t kMostOfName = 200;
  return '.' + last_name(target).substr(0, kMostOfName) + std::string(kMark);
}

bool is_staging_name(std::string_view name, std::string_view prefix) {
  return name.starts_with(prefix) && name.size() > prefix.size() &&
         name.find_first_not_of("0123456789-", prefix.size()) == std::string_view::npos;
}

// Removes staging files of this target that no process has open.
void remove_litter(const std::string& target) {
  const std::string prefix = staging_prefix(target);
  std::error_code failed;
  for (fs::directory_iterator entry(parent_folder(target), failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const std::string& path = entry->path().native();
    if (!is_staging_name(last_name(path), prefix)) {
      continue;
    }
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (descriptor >= 0 && ::flock(descriptor, LOCK_EX | LOCK_NB) == 0) {
      ::unlink(path.c_str());
    }
    if (descriptor >= 0) {
      ::close(descriptor);
    }
  }
}

Diagnostic unmakeable(const std::string& folder, int system_error, const OutputOptions& options) {
  return error(
      options.code,
      "expected a folder that can be made, got '" + folder + "': " + system_text(system_error),
      options.where);
}

}  // namespace

std::string system_text(int system_error) {
  std::string text = std::generic_category().message(system_error);
  const bool acronym = text.size() > 1 && std::isupper(static_cast<unsigned char>(text[1])) != 0;
  if (!text.empty() && !acronym) {
    text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  }
  return text;
}

Diagnostic unwritable(const std::string& path, int system_error, const OutputOptions& options) {
  return error(
      options.code,
      "expected a file that can be written, got '" + path + "': " + system_text(system_error),
      options.where);
}

std::string parent_folder(const std::string& path) {
  const std::size_t name = path.find_last_not_of('/');
  const std::size_t slash = name == std::string::npos ? 0 : path.rfind('/', name);
  if (slash == std::string::npos) {
    return ".";
  }
  const std::size_t end = path.find_last_not_of('/', slash);
  return end == std::string::npos ? "/" : path.substr(0, end + 1);
}

Status flush_folder(const std::string& folder, const OutputOptions& options) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) {
    return errno == EACCES ? Status() : fail(unwritable(folder, errno, options));
  }
  const int failed = uninterrupted([&] { return ::fsync(descriptor); }) == 0 ? 0 : errno;
  ::close(descriptor);
  if (failed != 0 && failed != EINVAL && failed != ENOTSUP) {
    return fail(unwritable(folder, failed, options));
  }
  return {};
}

Status make_folder(const std::string& folder, const OutputOptions& options) {
  struct stat found {};
  if (::stat(folder.c_str(), &found) == 0) {
    return S_ISDIR(found.st_mode) ? Status() : fail(unmakeable(folder, ENOTDIR, options));
  }
  if (errno != ENOENT) {
    return fail(unmakeable(folder, errno, options));
  }
  const std::string parent = parent_folder(folder);
  PIPER_TRY(make_folder(parent, options));
  if (::mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) {
    return fail(unmakeable(folder, errno, options));
  }
  if (::stat(folder.c_str(), &found) != 0) {
    return fail(unmakeable(folder, errno, options));  // a link to nowhere
  }
  return flush_folder(parent, options);
}

Status make_parents(const std::string& path, const OutputOptions& options) {
  return make_folder(parent_folder(path), options);
}

Expected<OutputFile> OutputFile::create(const std::string& path, OutputOptions options) {
  PIPER_ASSIGN(const Target target, find_target(path, options));
  OutputFile file;
  file.options_ = std::move(options);
  file.path_ = path;
  file.target_ = target.path;
  if (target.through) {
    PIPER_TRY(file.open_through(target.own_descriptor));
    return file;
  }
  PIPER_TRY(make_parents(target.path, file.options_));
  remove_litter(target.path);
  PIPER_TRY(file.open_staging());
  if (target.exists) {
    ::fchmod(file.descriptor_, target.mode);  // not every file system has modes
  }
  return file;
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : options_(std::move(other.options_)),
      path_(std::move(other.path_)),
      target_(std::move(other.target_)),
      staging_(std::exchange(other.staging_, {})),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  if (this != &other) {
    discard();
    options_ = std::move(other.options_);
    path_ = std::move(other.path_);
    target_ = std::move(other.target_);
    staging_ = std::exchange(other.staging_, {});
    descriptor_ = std::exchange(other.descriptor_, -1);
  }
  return *this;
}

OutputFile::~OutputFile() {
  discard();
}

void OutputFile::discard() {
  if (!staging_.empty()) {
    ::unlink(staging_.c_str());
    staging_.clear();
  }
  if (descriptor_ >= 0) {
    ::close(descriptor_);
    descriptor_ = -1;
  }
}

Status OutputFile::open_through(int own_descriptor) {
  descriptor_ =
      own_descriptor >= 0
          ? ::fcntl(own_descriptor, F_DUPFD_CLOEXEC, 3)
          : uninterrupted([&] { return ::open(target_.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY); });
  return descriptor_ >= 0 ? Status() : fail(unwritable(path_, errno, options_));
}

Status OutputFile::open_staging() {
  static std::atomic<unsigned> count{0};
  const std::string prefix = staging_prefix(target_) + std::to_string(::getpid()) + '-';
  for (int tries = 0; tries < 1000; ++tries) {
    const std::string name = beside(target_, prefix + std::to_string(count.fetch_add(1)));
    const int opened = uninterrupted([&] {
      return ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    });
    if (opened < 0 && errno == EEXIST) {
      continue;
    }
    if (opened < 0) {
      return fail(unwritable(path_, errno, options_));
    }
    // Waits for a process that took it for litter before it was locked; where there are no such
    // locks, nobody does.
    uninterrupted([&] { return ::flock(opened, LOCK_EX); });
    struct stat found {};
    if (::fstat(opened, &found) == 0 && found.st_nlink > 0) {
      descriptor_ = opened;
      staging_ = name;
      return {};
    }
    ::close(opened);
  }
  return fail(unwritable(path_, EEXIST, options_));
}

Status OutputFile::write(std::string_view bytes) {
  return write(bytes.data(), bytes.size());
}

Status OutputFile::write(const void* bytes, std::size_t count) {
  PIPER_CHECK(descriptor_ >= 0, "a write to a file that is complete");
  const char* at = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t written = uninterrupted([&] { return ::write(descriptor_, at, count); });
    if (written > 0) {
      at += written;
      count -= static_cast<std::size_t>(written);
    } else if (written < 0 && errno == EAGAIN) {
      pollfd ready{descriptor_, POLLOUT, 0};
      ::poll(&ready, 1, -1);
    } else {
      return fail(unwritable(path_, written == 0 ? EIO : errno, options_));
    }
  }
  return {};
}

Status OutputFile::stage() {
  PIPER_CHECK(descriptor_ >= 0, "a file that was complete already");
  if (uninterrupted([&] { return ::fsync(descriptor_); }) == 0) {
    return {};
  }
  const bool no_disk = staging_.empty() && (errno == EINVAL || errno == EROFS || errno == ENOTSUP);
  return no_disk ? Status() : fail(unwritable(path_, errno, options_));
}

Status OutputFile::publish() {
  PIPER_CHECK(descriptor_ >= 0, "a file that was complete already");
  if (!staging_.empty()) {
    if (::rename(staging_.c_str(), target_.c_str()) != 0) {
      return fail(unwritable(path_, errno, options_));
    }
    staging_.clear();
  }
  if (::close(std::exchange(descriptor_, -1)) != 0 && errno != EINTR) {
    return fail(unwritable(path_, errno, options_));
  }
  return {};
}

Status OutputFile::commit() {
  const bool staged = !staging_.empty();
  PIPER_TRY(stage());
  PIPER_TRY(publish());
  return staged ? flush_folder(parent_folder(target_), options_) : Status();
}

Status write_file(const std::string& path, std::string_view bytes, OutputOptions options) {
  PIPER_ASSIGN(OutputFile file, OutputFile::create(path, std::move(options)));
  PIPER_TRY(file.write(bytes));
  return file.commit();
}

Status check_writable(const std::string& path, const OutputOptions& options) {
  PIPER_ASSIGN(const Target target, find_target(path, options));
  if (target.own_descriptor >= 0) {
    const int mode = ::fcntl(target.own_descriptor, F_GETFL);
    return mode >= 0 && (mode & O_ACCMODE) != O_RDONLY ? Status()
                                                       : fail(unwritable(path, EBADF, options));
  }
  if (target.through) {
    return {};
  }
  // The first name that is missing, in a folder that is there: can something be made under it?
  std::string missing = target.path;
  for (struct stat found{}; ::stat(parent_folder(missing).c_str(), &found) != 0;) {
    if (errno != ENOENT || ::lstat(parent_folder(missing).c_str(), &found) == 0) {
      return fail(unwritable(path, errno == 0 ? ENOENT : errno, options));
    }
    missing = parent_folder(missing);
  }
  OutputFile probe;
  probe.options_ = options;
  probe.path_ = path;
  probe.target_ = missing;
  remove_litter(missing);
  return probe.open_staging();
}

}  // namespace piper

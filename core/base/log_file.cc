#include "core/base/log_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "core/base/file_lock.h"
#include "core/base/output_target.h"
#include "core/base/system_call.h"

namespace piper {
namespace {

// a -> a.1, a.1 -> a.2, ... up to the first name that is free; the last first, and on disk before
// the next, so that each crash leaves every file under some name.
Status keep(const std::string& file, const std::string& path, const OutputOptions& options) {
  struct stat found {};
  int free = 1;
  while (::lstat((file + '.' + std::to_string(free)).c_str(), &found) == 0) {
    ++free;
  }
  for (; free > 0; --free) {
    const std::string from = free == 1 ? file : file + '.' + std::to_string(free - 1);
    if (::rename(from.c_str(), (file + '.' + std::to_string(free)).c_str()) != 0) {
      return fail(unwritable(path, errno, options));
    }
    PIPER_TRY(flush_folder(parent_folder(file), options));
  }
  return {};
}

}  // namespace

Expected<LogFile> LogFile::create(const std::string& path, OutputOptions options) {
  PIPER_ASSIGN(const OutputTarget target, find_target(path, options));
  LogFile file;
  file.options_ = std::move(options);
  file.path_ = path;
  file.through_ = target.through;
  if (target.through) {
    PIPER_ASSIGN(file.descriptor_, open_through(target, path, file.options_));
    return file;
  }
  PIPER_TRY(make_parents(target.path, file.options_));
  for (bool ready = false; !ready;) {
    PIPER_TRY(file.open(target.path, &ready));
  }
  if (target.exists) {
    ::fchmod(file.descriptor_, target.mode);
  }
  PIPER_TRY(flush_folder(parent_folder(target.path), file.options_));
  return file;
}

// Not ready where a lock was had too late: the name is another file's, or of one that was just
// kept.
Status LogFile::open(const std::string& target, bool* ready) {
  const int opened = uninterrupted([&] {
    return ::open(target.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  });
  if (opened < 0) {
    return fail(unwritable(path_, errno, options_));
  }
  // The one before, whose lock was held until the name was open again.
  if (const int before = std::exchange(descriptor_, opened); before >= 0) {
    ::close(before);
  }
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return fail(in_use(path_, lock_holder(descriptor_), options_));
  }
  struct stat own {
  }, named{};
  if (::fstat(descriptor_, &own) != 0) {
    return fail(unwritable(path_, errno, options_));
  }
  const bool same = ::lstat(target.c_str(), &named) == 0 && own.st_dev == named.st_dev &&
                    own.st_ino == named.st_ino;
  if (same && own.st_size > 0) {
    return keep(target, path_, options_);
  }
  *ready = same;
  return {};
}

LogFile::LogFile(LogFile&& other) noexcept
    : options_(std::move(other.options_)),
      path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      through_(other.through_) {}

LogFile& LogFile::operator=(LogFile&& other) noexcept {
  std::swap(options_, other.options_);
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(through_, other.through_);
  return *this;
}

LogFile::~LogFile() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
  }
}

Status LogFile::write_line(std::string_view line) {
  const std::string whole = std::string(line) + '\n';
  struct stat before {};
  const bool can_take_back = !through_ && ::fstat(descriptor_, &before) == 0;
  if (const int failed = write_all(descriptor_, whole); failed != 0) {
    if (can_take_back && ::ftruncate(descriptor_, before.st_size) != 0) {
      return fail(unwritable(path_, errno, options_));
    }
    return fail(unwritable(path_, failed, options_));
  }
  return {};
}

Status LogFile::flush() {
  if (through_ || uninterrupted([&] { return ::fsync(descriptor_); }) == 0) {
    return {};
  }
  return fail(unwritable(path_, errno, options_));
}

}  // namespace piper

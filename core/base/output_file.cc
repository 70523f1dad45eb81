#include "core/base/output_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <utility>

#include "core/base/file_lock.h"
#include "core/base/output_target.h"
#include "core/base/system_call.h"

namespace piper {
namespace {

// Removes staging files of this target that no process has open.
void remove_litter(const std::string& target) {
  for (const std::string& file : staging_files(target)) {
    const int descriptor = ::open(file.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (descriptor >= 0 && ::flock(descriptor, LOCK_EX | LOCK_NB) == 0) {
      ::unlink(file.c_str());
    }
    if (descriptor >= 0) {
      ::close(descriptor);
    }
  }
}

}  // namespace

Expected<OutputFile> OutputFile::create(const std::string& path, OutputOptions options) {
  PIPER_ASSIGN(const OutputTarget target, find_target(path, options));
  OutputFile file;
  file.options_ = std::move(options);
  file.path_ = path;
  file.target_ = target.path;
  if (target.through) {
    PIPER_ASSIGN(file.descriptor_, open_through(target, path, file.options_));
    return file;
  }
  PIPER_TRY(make_parents(target.path, file.options_));
  remove_litter(target.path);
  PIPER_TRY(file.open_staging());
  if (file.options_.exclusive) {
    PIPER_TRY(file.be_alone());
  }
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

// Of two that come at the same time each is locked before it looks, so at most one goes on.
Status OutputFile::be_alone() const {
  for (const std::string& other : staging_files(target_)) {
    struct stat own {
    }, found{};
    const int descriptor = ::open(other.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) {
      continue;
    }
    const bool same = ::fstat(descriptor_, &own) == 0 && ::fstat(descriptor, &found) == 0 &&
                      own.st_dev == found.st_dev && own.st_ino == found.st_ino;
    const bool held = !same && ::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    const std::string holder = held ? lock_holder(descriptor) : "";
    ::close(descriptor);
    if (held) {
      return fail(in_use(path_, holder, options_));
    }
  }
  return {};
}

Status OutputFile::write(std::string_view bytes) {
  return write(bytes.data(), bytes.size());
}

Status OutputFile::write(const void* bytes, std::size_t count) {
  PIPER_CHECK(descriptor_ >= 0, "a write to a file that is complete");
  const int failed = write_all(descriptor_, {static_cast<const char*>(bytes), count});
  return failed == 0 ? Status() : fail(unwritable(path_, failed, options_));
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
  PIPER_ASSIGN(const OutputTarget target, find_target(path, options));
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

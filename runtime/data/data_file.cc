#include "runtime/data/data_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <utility>

namespace piper {
namespace {

constexpr rlim_t kOtherFiles = 256;  // descriptors for everything but data

Diagnostic unreadable(const SourceFile& file, int failure, const Location& where) {
  return error("data.unreadable", file.path + ": " + std::strerror(failure), where);
}

Diagnostic changed(const SourceFile& file, std::uint64_t bytes_now) {
  const std::string now = bytes_now == file.bytes
                              ? "it was written to"
                              : "it had " + std::to_string(file.bytes) + " bytes, now it has " +
                                    std::to_string(bytes_now);
  return error("data.changed",
               "the data file has changed since the job looked at it: " + now +
                   "; while a job runs, its files may be removed or replaced by renaming, not "
                   "written to",
               {file.path, 0, 0});
}

// How many data files may be open at once, after asking for as many as `wanted`.
std::size_t descriptors(std::size_t wanted) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return 0;
  }
  const rlim_t needed = static_cast<rlim_t>(wanted) + kOtherFiles;
  if (limit.rlim_cur < needed && limit.rlim_cur < limit.rlim_max) {
    const rlimit raised = {std::min(needed, limit.rlim_max), limit.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) {
      limit = raised;
    }
  }
  return limit.rlim_cur > kOtherFiles ? limit.rlim_cur - kOtherFiles : 0;
}

}  // namespace

Expected<DataFile> DataFile::open(const SourceFile& file, const Location& where) {
  DataFile opened(file);
  opened.descriptor_ = ::open(file.path.c_str(), O_RDONLY | O_CLOEXEC);
  if (opened.descriptor_ < 0) {
    return fail(unreadable(file, errno, where));
  }
  PIPER_TRY(opened.unchanged());
  return opened;
}

Expected<DataFile> DataFile::load(const SourceFile& file, const Location& where) {
  PIPER_ASSIGN(const DataFile opened, open(file, where));
  DataFile loaded(file);
  loaded.memory_.resize(file.bytes);
  PIPER_TRY(opened.read(0, file.bytes, loaded.memory_.data()));
  return loaded;
}

DataFile::DataFile(DataFile&& other) noexcept
    : source_(std::move(other.source_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      memory_(std::move(other.memory_)) {}

DataFile& DataFile::operator=(DataFile&& other) noexcept {
  std::swap(source_, other.source_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(memory_, other.memory_);
  return *this;
}

DataFile::~DataFile() {
  if (descriptor_ >= 0) {
    close(descriptor_);
  }
}

Status DataFile::unchanged() const {
  struct stat status {};
  if (fstat(descriptor_, &status) != 0) {
    return fail(unreadable(source_, errno, {}));
  }
  // Device and inode matter while it is opened alone: a descriptor stays with its file.
  if (SourceFile(source_.path, status) != source_) {
    return fail(changed(source_, static_cast<std::uint64_t>(status.st_size)));
  }
  return {};
}

Status DataFile::read(std::uint64_t offset, std::size_t count, char* to) const {
  if (descriptor_ < 0) {
    std::memcpy(to, memory_.data() + offset, count);
    return {};
  }
  for (std::size_t done = 0; done < count;) {
    const ssize_t got =
        pread(descriptor_, to + done, count - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno != EINTR) {
      return fail(unreadable(source_, errno, {}));
    }
    if (got == 0) {
      PIPER_TRY(unchanged());
      return fail(unreadable(source_, EIO, {}));
    }
    done += static_cast<std::size_t>(std::max<ssize_t>(got, 0));
  }
  // Afterwards: what was read is then of the file as it was.
  return unchanged();
}

Expected<std::vector<DataFile>> open_files(const std::vector<SourceFile>& files,
                                           const Location& where) {
  const std::size_t kept = std::min(files.size(), descriptors(files.size()));
  std::vector<std::size_t> by_size(files.size());
  std::iota(by_size.begin(), by_size.end(), std::size_t{0});
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](std::size_t a, std::size_t b) { return files[a].bytes > files[b].bytes; });
  std::vector<bool> keep(files.size(), false);
  for (std::size_t i = 0; i < kept; ++i) {
    keep[by_size[i]] = true;
  }
  std::vector<DataFile> opened;
  opened.reserve(files.size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    PIPER_ASSIGN(DataFile file,
                 keep[i] ? DataFile::open(files[i], where) : DataFile::load(files[i], where));
    opened.push_back(std::move(file));
  }
  return opened;
}

}  // namespace piper

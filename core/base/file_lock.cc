#include "core/base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>
#include <utility>

namespace piper {
namespace {

namespace fs = std::filesystem;

std::string read_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

bool is_number(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
}

// Whether a process's descriptor is on this file and has its lock. What may not be seen is not.
bool holds(const std::string& process, const struct stat& file) {
  std::error_code failed;
  for (fs::directory_iterator entry(process + "/fd", failed), end; !failed && entry != end;
       entry.increment(failed)) {
    struct stat found {};
    if (::stat(entry->path().c_str(), &found) == 0 && found.st_dev == file.st_dev &&
        found.st_ino == file.st_ino &&
        read_file(process + "/fdinfo/" + entry->path().filename().string()).find("FLOCK") !=
            std::string::npos) {
      return true;
    }
  }
  return false;
}

// From the kernel's list, which has processes of other users too: `1: FLOCK ADVISORY WRITE 812
// 08:01:1234 0 EOF`. 0 where it is not there.
long long listed_holder(const struct stat& file) {
  std::istringstream locks(read_file("/proc/locks"));
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words(line);
    std::string number, kind, how, what, where;
    long long process = 0;
    if (words >> number >> kind >> how >> what >> process >> where && kind == "FLOCK" &&
        where.ends_with(':' + std::to_string(file.st_ino))) {
      return process;
    }
  }
  return 0;
}

long long find_holder(const struct stat& file) {
  std::error_code failed;
  for (fs::directory_iterator entry("/proc", failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const std::string name = entry->path().filename();
    if (is_number(name) && holds(entry->path(), file)) {
      return std::stoll(name);
    }
  }
  return listed_holder(file);
}

// With a space between arguments, what is no printable ASCII as '?', and not longer than a line.
std::string command_of(long long process) {
  constexpr std::size_t kMost = 100;
  std::string text = read_file("/proc/" + std::to_string(process) + "/cmdline");
  while (text.ends_with('\0')) {
    text.pop_back();
  }
  for (char& c : text) {
    c = c == '\0' ? ' ' : c < ' ' || c > '~' ? '?' : c;
  }
  return text.size() > kMost ? text.substr(0, kMost) + "..." : text;
}

std::string start_of(long long process) {
  // `812 (any name) S 1 ...`: the 20th word after the name is the start, in ticks since the boot.
  const std::string status = read_file("/proc/" + std::to_string(process) + "/stat");
  const std::size_t name = status.rfind(')');
  std::istringstream words(name == std::string::npos ? "" : status.substr(name + 1));
  std::string word;
  for (int i = 0; i < 20; ++i) {
    words >> word;
  }
  const std::string system = read_file("/proc/stat");
  const std::size_t boot = system.find("\nbtime ");
  if (!words || !is_number(word) || boot == std::string::npos) {
    return "";
  }
  const std::time_t time =
      std::stoll(system.substr(boot + 7)) + std::stoll(word) / ::sysconf(_SC_CLK_TCK);
  std::tm local{};
  char text[32];
  ::localtime_r(&time, &local);
  return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local));
}

}  // namespace

std::string lock_holder(int descriptor) {
  struct stat file {};
  const long long process = ::fstat(descriptor, &file) == 0 ? find_holder(file) : 0;
  if (process <= 0) {
    return "another process";
  }
  const std::string command = command_of(process), start = start_of(process);
  return "process " + std::to_string(process) + (command.empty() ? "" : " (" + command + ')') +
         (start.empty() ? "" : ", started " + start);
}

Diagnostic in_use(const std::string& path, const std::string& holder,
                  const OutputOptions& options) {
  return error("file.in_use",
               "expected an output that no other job writes, got '" + path +
                   "', which is in use by " + holder,
               options.where);
}

Expected<FolderLock> FolderLock::take(const std::string& folder, const OutputOptions& options) {
  FolderLock lock;
  lock.descriptor_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock.descriptor_ < 0) {
    return fail(unwritable(folder, errno, options));
  }
  if (::flock(lock.descriptor_, LOCK_EX | LOCK_NB) == 0) {
    return lock;
  }
  if (errno == EWOULDBLOCK) {
    return fail(in_use(folder, lock_holder(lock.descriptor_), options));
  }
  OutputOptions alone = options;
  alone.exclusive = true;
  PIPER_ASSIGN(lock.file_, OutputFile::create(folder + "/in_use", std::move(alone)));
  return lock;
}

FolderLock::FolderLock(FolderLock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), file_(std::move(other.file_)) {
  other.file_.reset();
}

FolderLock& FolderLock::operator=(FolderLock&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(file_, other.file_);
  return *this;
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
  }
}

}  // namespace piper

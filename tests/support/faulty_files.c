#define _GNU_SOURCE
#include "tests/support/faulty_files.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

// Descriptors are few in the programs under test.
enum { kMostDescriptors = 4096 };

// What a descriptor is, where it is one of ours.
typedef enum { kOther = 0, kFile, kFolder } Kind;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static Kind kinds[kMostDescriptors];
static int log_file = -1;
static long at = -1, calls = 0;
static int error_number = ENOSPC;
static enum { kNothing, kFail, kFailOn, kShort, kKill } action = kNothing;
static char below[PATH_MAX];
static size_t below_length = 0;

__attribute__((constructor)) static void start(void) {
  const char* folder = getenv(PIPER_FAULTS_BELOW);
  const char* log = getenv(PIPER_FAULTS_LOG);
  const char* number = getenv(PIPER_FAULTS_AT);
  const char* what = getenv(PIPER_FAULTS_DO);
  const char* with = getenv(PIPER_FAULTS_ERRNO);
  if (folder == NULL || folder[0] != '/' || strlen(folder) >= sizeof below) {
    return;
  }
  strcpy(below, folder);
  below_length = strlen(below);
  if (log != NULL) {
    // A high number: those of the program stay as they are without this library.
    const int opened =
        (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    log_file = opened < 0 ? -1 : (int)syscall(SYS_fcntl, opened, F_DUPFD_CLOEXEC, 900);
    syscall(SYS_close, opened);
  }
  at = number == NULL ? -1 : atol(number);
  error_number = with == NULL ? ENOSPC : atoi(with);
  action = what == NULL                   ? kNothing
           : strcmp(what, "fail") == 0    ? kFail
           : strcmp(what, "fail-on") == 0 ? kFailOn
           : strcmp(what, "short") == 0   ? kShort
           : strcmp(what, "kill") == 0    ? kKill
                                          : kNothing;
}

// The path as an absolute one, without "." and "..", links of the last name not followed. False
// where it is not below the folder.
static int absolute(int folder, const char* path, char* result) {
  char joined[2 * PATH_MAX];
  if (below_length == 0 || path == NULL || strlen(path) >= PATH_MAX) {
    return 0;
  }
  if (path[0] == '/') {
    strcpy(joined, path);
  } else {
    char base[PATH_MAX] = "";
    if (folder == AT_FDCWD) {
      if (getcwd(base, sizeof base) == NULL) {
        return 0;
      }
    } else {
      char link[64];
      snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
      const ssize_t length = readlink(link, base, sizeof base - 1);
      if (length <= 0) {
        return 0;
      }
      base[length] = '\0';
    }
    snprintf(joined, sizeof joined, "%s/%s", base, path);
  }
  // Names of folders that are links are resolved; the last name is not, and need not be there.
  size_t length = strlen(joined);
  while (length > 1 && joined[length - 1] == '/') {
    joined[--length] = '\0';
  }
  char* name = strrchr(joined, '/');
  char parent[2 * PATH_MAX];
  memcpy(parent, joined, (size_t)(name - joined));
  parent[name - joined] = '\0';
  char real[PATH_MAX];
  if (realpath(name == joined ? "/" : parent, real) == NULL) {
    return 0;
  }
  const int dot = strcmp(name, "/.") == 0;
  if (strlen(real) + strlen(name) + 1 > PATH_MAX) {
    return 0;
  }
  strcpy(result, strcmp(real, "/") == 0 ? "" : real);
  strcat(result, dot ? "" : name);
  return strncmp(result, below, below_length) == 0 &&
         (result[below_length] == '/' || result[below_length] == '\0');
}

static Kind kind_of(int descriptor) {
  return descriptor >= 0 && descriptor < kMostDescriptors ? kinds[descriptor] : kOther;
}

static void set_kind(int descriptor, Kind kind) {
  if (descriptor >= 0 && descriptor < kMostDescriptors) {
    kinds[descriptor] = kind;
  }
}

// A record: lines, and the bytes that follow them.
static void record(const char* line, const void* bytes, size_t count) {
  if (log_file < 0) {
    return;
  }
  struct iovec parts[2] = {{(void*)line, strlen(line)}, {(void*)bytes, count}};
  if (syscall(SYS_writev, log_file, parts, count > 0 ? 2 : 1) !=
      (ssize_t)(parts[0].iov_len + count)) {
    abort();  // without its log a test says nothing
  }
}

// A record without bytes, after the number of its call.
__attribute__((format(printf, 1, 2))) static void note(const char* format, ...) {
  char line[3 * PATH_MAX];
  va_list arguments;
  va_start(arguments, format);
  int length = snprintf(line, sizeof line, "%ld ", calls);
  length += vsnprintf(line + length, sizeof line - (size_t)length - 1, format, arguments);
  va_end(arguments);
  strcpy(line + length, "\n");
  record(line, NULL, 0);
}

typedef enum { kDo, kDoHalf, kRefuse, kHalfThenDie } Verdict;

// Counts a call, and says what becomes of it. `cleans`: a call that gives something back.
static Verdict next_call(int is_write, int cleans) {
  ++calls;
  if (action == kFailOn && calls >= at && !cleans) {
    errno = error_number;
    return kRefuse;
  }
  if (calls != at) {
    return kDo;
  }
  if (action == kFail) {
    errno = error_number;
    return kRefuse;
  }
  if (action == kKill && !is_write) {
    kill(getpid(), SIGKILL);
  }
  return action == kKill ? kHalfThenDie : action == kShort && is_write ? kDoHalf : kDo;
}

static int open_seen(int folder, const char* path, int flags, mode_t mode) {
  char full[PATH_MAX];
  if (!absolute(folder, path, full)) {
    return (int)syscall(SYS_openat, folder, path, flags, mode);
  }
  const int writes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT) != 0;
  int opened = -1;
  pthread_mutex_lock(&mutex);
  if (!writes || next_call(0, 0) != kRefuse) {
    opened = (int)syscall(SYS_openat, folder, path, flags, mode);
    struct stat found;
    if (opened >= 0 && fstat(opened, &found) == 0) {
      set_kind(opened, S_ISDIR(found.st_mode)             ? kFolder
                       : writes && S_ISREG(found.st_mode) ? kFile
                                                          : kOther);
      if (kind_of(opened) == kFolder) {
        note("folder %d %s", opened, full);
      } else if (kind_of(opened) == kFile) {
        note("open %d %d %s", opened, (flags & O_TRUNC) != 0, full);
      }
    }
  }
  pthread_mutex_unlock(&mutex);
  return opened;
}

// The mode follows only where a file may be made.
#define MODE(flags)                             \
  mode_t mode = 0;                              \
  if (((flags) & (O_CREAT | O_TMPFILE)) != 0) { \
    va_list rest;                               \
    va_start(rest, flags);                      \
    mode = va_arg(rest, mode_t);                \
    va_end(rest);                               \
  }

int open(const char* path, int flags, ...) {
  MODE(flags)
  return open_seen(AT_FDCWD, path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  MODE(flags)
  return open_seen(AT_FDCWD, path, flags | O_LARGEFILE, mode);
}
int openat(int folder, const char* path, int flags, ...) {
  MODE(flags)
  return open_seen(folder, path, flags, mode);
}
int openat64(int folder, const char* path, int flags, ...) {
  MODE(flags)
  return open_seen(folder, path, flags | O_LARGEFILE, mode);
}
int creat(const char* path, mode_t mode) {
  return open_seen(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode);
}

// A stream for writing: its descriptor is opened here, where it can be seen. What fwrite puts out
// is not seen, but what std::ofstream does is.
static FILE* fopen_seen(const char* path, const char* how, const char* name) {
  char full[PATH_MAX];
  const int plus = strchr(how, '+') != NULL;
  if ((how[0] == 'r' && !plus) || !absolute(AT_FDCWD, path, full)) {
    FILE* (*real)(const char*, const char*) = NULL;
    *(void**)&real = dlsym(RTLD_NEXT, name);
    return real(path, how);
  }
  int flags = plus ? O_RDWR : O_WRONLY;
  flags |= how[0] == 'w' ? O_CREAT | O_TRUNC : how[0] == 'a' ? O_CREAT | O_APPEND : 0;
  flags |= strchr(how, 'e') != NULL ? O_CLOEXEC : 0;
  flags |= strchr(how, 'x') != NULL ? O_EXCL : 0;
  const int opened = open_seen(AT_FDCWD, path, flags, 0666);
  return opened < 0 ? NULL : fdopen(opened, how);
}
FILE* fopen(const char* path, const char* how) {
  return fopen_seen(path, how, "fopen");
}
FILE* fopen64(const char* path, const char* how) {
  return fopen_seen(path, how, "fopen64");
}

// One write: at `offset`, or where the descriptor is for -1.
static ssize_t write_seen(int descriptor, const void* bytes, size_t count, off_t offset) {
  if (kind_of(descriptor) != kFile) {
    return offset < 0 ? syscall(SYS_write, descriptor, bytes, count)
                      : syscall(SYS_pwrite64, descriptor, bytes, count, offset);
  }
  ssize_t written = -1;
  pthread_mutex_lock(&mutex);
  const Verdict verdict = next_call(1, 0);
  if (verdict != kRefuse) {
    const size_t some = verdict == kDo ? count : (count + 1) / 2;
    written = offset < 0 ? syscall(SYS_write, descriptor, bytes, some)
                         : syscall(SYS_pwrite64, descriptor, bytes, some, offset);
    if (verdict == kHalfThenDie) {
      kill(getpid(), SIGKILL);
    }
    if (written > 0) {
      const off_t begin = offset < 0 ? lseek(descriptor, 0, SEEK_CUR) - written : offset;
      char line[128];
      snprintf(line, sizeof line, "%ld write %d %lld %zd\n", calls, descriptor, (long long)begin,
               written);
      record(line, bytes, (size_t)written);
    }
  }
  pthread_mutex_unlock(&mutex);
  return written;
}

ssize_t write(int descriptor, const void* bytes, size_t count) {
  return write_seen(descriptor, bytes, count, -1);
}
ssize_t pwrite(int descriptor, const void* bytes, size_t count, off_t offset) {
  return write_seen(descriptor, bytes, count, offset);
}
ssize_t pwrite64(int descriptor, const void* bytes, size_t count, off64_t offset) {
  return write_seen(descriptor, bytes, count, offset);
}
// As one write of all parts.
ssize_t writev(int descriptor, const struct iovec* parts, int count) {
  if (kind_of(descriptor) != kFile) {
    return syscall(SYS_writev, descriptor, parts, count);
  }
  size_t total = 0;
  for (int i = 0; i < count; ++i) {
    total += parts[i].iov_len;
  }
  char* const joined = malloc(total + 1);
  size_t end = 0;
  for (int i = 0; i < count; ++i) {
    memcpy(joined + end, parts[i].iov_base, parts[i].iov_len);
    end += parts[i].iov_len;
  }
  const ssize_t written = write_seen(descriptor, joined, total, -1);
  free(joined);
  return written;
}

static int truncate_seen(int descriptor, off_t length) {
  if (kind_of(descriptor) != kFile) {
    return (int)syscall(SYS_ftruncate, descriptor, length);
  }
  int result = -1;
  pthread_mutex_lock(&mutex);
  if (next_call(0, 0) != kRefuse) {
    result = (int)syscall(SYS_ftruncate, descriptor, length);
    if (result == 0) {
      note("truncate %d %lld", descriptor, (long long)length);
    }
  }
  pthread_mutex_unlock(&mutex);
  return result;
}
int ftruncate(int descriptor, off_t length) {
  return truncate_seen(descriptor, length);
}
int ftruncate64(int descriptor, off64_t length) {
  return truncate_seen(descriptor, length);
}

static int sync_seen(int descriptor, long number) {
  if (kind_of(descriptor) == kOther) {
    return (int)syscall(number, descriptor);
  }
  int result = -1;
  pthread_mutex_lock(&mutex);
  if (next_call(0, 0) != kRefuse) {
    result = (int)syscall(number, descriptor);
    if (result == 0) {
      note("sync %d", descriptor);
    }
  }
  pthread_mutex_unlock(&mutex);
  return result;
}
int fsync(int descriptor) {
  return sync_seen(descriptor, SYS_fsync);
}
int fdatasync(int descriptor) {
  return sync_seen(descriptor, SYS_fdatasync);
}

int close(int descriptor) {
  const Kind kind = kind_of(descriptor);
  if (kind != kFile) {
    set_kind(descriptor, kOther);
    return (int)syscall(SYS_close, descriptor);
  }
  pthread_mutex_lock(&mutex);
  const Verdict verdict = next_call(0, 1);
  set_kind(descriptor, kOther);
  int result = (int)syscall(SYS_close, descriptor);  // also where it fails: Linux always closes
  note("close %d", descriptor);
  if (verdict == kRefuse) {
    result = -1;
    errno = error_number;
  }
  pthread_mutex_unlock(&mutex);
  return result;
}

static int rename_seen(int from_folder, const char* from, int to_folder, const char* to,
                       unsigned flags) {
  char before[PATH_MAX], after[PATH_MAX];
  if (!absolute(from_folder, from, before) || !absolute(to_folder, to, after)) {
    return (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
  }
  int result = -1;
  pthread_mutex_lock(&mutex);
  if (next_call(0, 0) != kRefuse) {
    result = (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
    if (result == 0) {
      note("rename %s\n%s", before, after);
    }
  }
  pthread_mutex_unlock(&mutex);
  return result;
}
int rename(const char* from, const char* to) {
  return rename_seen(AT_FDCWD, from, AT_FDCWD, to, 0);
}
int renameat(int from_folder, const char* from, int to_folder, const char* to) {
  return rename_seen(from_folder, from, to_folder, to, 0);
}
int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  return rename_seen(from_folder, from, to_folder, to, flags);
}

// A call that makes or removes one name. `cleans`: it gives something back.
static int name_seen(const char* what, int folder, const char* path, long number, unsigned last,
                     int cleans) {
  char full[PATH_MAX];
  if (!absolute(folder, path, full)) {
    return (int)syscall(number, folder, path, last);
  }
  int result = -1;
  pthread_mutex_lock(&mutex);
  if (next_call(0, cleans) != kRefuse) {
    result = (int)syscall(number, folder, path, last);
    if (result == 0) {
      note("%s %s", what, full);
    }
  }
  pthread_mutex_unlock(&mutex);
  return result;
}
int unlink(const char* path) {
  return name_seen("remove", AT_FDCWD, path, SYS_unlinkat, 0, 1);
}
int unlinkat(int folder, const char* path, int flags) {
  return name_seen("remove", folder, path, SYS_unlinkat, (unsigned)flags, 1);
}
int rmdir(const char* path) {
  return name_seen("remove", AT_FDCWD, path, SYS_unlinkat, AT_REMOVEDIR, 1);
}
int remove(const char* path) {
  struct stat found;
  return lstat(path, &found) == 0 && S_ISDIR(found.st_mode) ? rmdir(path) : unlink(path);
}
int mkdir(const char* path, mode_t mode) {
  return name_seen("mkdir", AT_FDCWD, path, SYS_mkdirat, mode, 0);
}
int mkdirat(int folder, const char* path, mode_t mode) {
  return name_seen("mkdir", folder, path, SYS_mkdirat, mode, 0);
}

// Piper does none of these, and power_loss.cc cannot replay them: it stops at the record.
static int unknown(const char* what, const char* path, int folder, long result) {
  char full[PATH_MAX];
  if (result >= 0 && absolute(folder, path, full)) {
    pthread_mutex_lock(&mutex);
    note("unknown %s %s", what, full);
    pthread_mutex_unlock(&mutex);
  }
  return (int)result;
}
int link(const char* from, const char* to) {
  return unknown("link", to, AT_FDCWD, syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0));
}
int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) {
  return unknown("link", to, to_folder,
                 syscall(SYS_linkat, from_folder, from, to_folder, to, flags));
}
int symlink(const char* to, const char* path) {
  return unknown("symlink", path, AT_FDCWD, syscall(SYS_symlinkat, to, AT_FDCWD, path));
}
int truncate(const char* path, off_t length) {
  return unknown("truncate", path, AT_FDCWD, syscall(SYS_truncate, path, length));
}

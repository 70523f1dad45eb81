#include "core/cli/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <iostream>
#include <streambuf>

#include "core/base/folders.h"

namespace piper {
namespace {

// std::cout through stdout, as it is anyway, but with a memory of what went wrong first.
class StandardOutput final : public std::streambuf {
 public:
  int failure() const { return failure_; }

 protected:
  int_type overflow(int_type c) override {
    const char byte = traits_type::to_char_type(c);
    return traits_type::eq_int_type(c, traits_type::eof()) || xsputn(&byte, 1) == 1
               ? traits_type::not_eof(c)
               : traits_type::eof();
  }
  std::streamsize xsputn(const char* bytes, std::streamsize count) override {
    errno = 0;
    const std::size_t written = std::fwrite(bytes, 1, static_cast<std::size_t>(count), stdout);
    remember(written == static_cast<std::size_t>(count));
    return static_cast<std::streamsize>(written);
  }
  int sync() override {
    errno = 0;
    const bool flushed = std::fflush(stdout) == 0;
    remember(flushed);
    return flushed ? 0 : -1;
  }

 private:
  void remember(bool done) { failure_ = done || failure_ != 0 ? failure_ : errno; }

  int failure_ = 0;  // an errno
};

// Never destroyed: std::cout is flushed after everything else.
StandardOutput& standard_output() {
  static auto* const buffer = new StandardOutput;
  return *buffer;
}

}  // namespace

void secure_standard_streams() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) == -1) {
      // The lowest number that is free, which is this one. Nothing is left to do where it fails.
      [[maybe_unused]] const int opened = ::open("/dev/null", O_RDWR);
    }
  }
}

void watch_standard_output() {
  std::cout.rdbuf(&standard_output());
}

Status flush_standard_output() {
  std::cout.flush();
  errno = 0;
  bool failed = std::fflush(stdout) != 0 || std::ferror(stdout) != 0 || std::cout.bad();
  if (!failed) {
    // File systems of other machines may say only as a file is closed that it could not be written.
    const int copy = ::dup(STDOUT_FILENO);
    failed = copy >= 0 && ::close(copy) != 0;
  }
  if (!failed) {
    return {};
  }
  const int reason = standard_output().failure() != 0 ? standard_output().failure() : errno;
  return fail(error("cli.stdout", "standard output cannot be written" +
                                      (reason == 0 ? "" : ": " + system_text(reason))));
}

}  // namespace piper

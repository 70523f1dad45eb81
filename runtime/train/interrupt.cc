#include "runtime/train/interrupt.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/diagnostic.h"

namespace piper {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM};

// What the handler may touch: lock-free atomics, and write().
std::atomic<int> count{0};
std::atomic<int> descriptor{-1};

void handle(int signal) {
  const int saved = errno;
  if (count.fetch_add(1) == 1) {
    struct sigaction usual {};
    usual.sa_handler = SIG_DFL;
    sigaction(signal, &usual, nullptr);
  }
  const char byte = 's';
  [[maybe_unused]] const ssize_t written = write(descriptor.load(), &byte, 1);
  errno = saved;
}

}  // namespace

Interrupt::Interrupt(std::function<void()> now) : now_(std::move(now)) {
  PIPER_CHECK(descriptor.load() == -1, "two objects that take Ctrl-C");
  PIPER_CHECK(pipe2(pipe_, O_CLOEXEC) == 0, "pipe");
  count = 0;
  descriptor = pipe_[1];
  struct sigaction ours {};
  ours.sa_handler = handle;
  ours.sa_flags = SA_RESTART;
  for (int i = 0; i < 2; ++i) {
    sigaction(kSignals[i], &ours, &before_[i]);
  }
  watcher_ = std::thread([this] { watch(); });
}

Interrupt::~Interrupt() {
  for (int i = 0; i < 2; ++i) {
    sigaction(kSignals[i], &before_[i], nullptr);
  }
  const char byte = 'q';
  [[maybe_unused]] const ssize_t written = write(pipe_[1], &byte, 1);
  watcher_.join();
  descriptor = -1;
  close(pipe_[0]);
  close(pipe_[1]);
}

bool Interrupt::requested() const {
  return count.load() > 0;
}

void Interrupt::watch() {
  int signals = 0;
  char byte = 0;
  while (read(pipe_[0], &byte, 1) == 1 && byte != 'q') {
    if (++signals == 2) {
      now_();
    }
  }
}

}  // namespace piper

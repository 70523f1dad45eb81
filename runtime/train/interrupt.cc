#include "runtime/train/interrupt.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/diagnostic.h"

namespace piper {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM};

// What the handler may touch: lock-free atomics, sigaction() and write(). The pipe stays open to
// the end of the process: a handler may still run on another thread when the object is gone.
std::atomic<int> count{0};
std::atomic<bool> taken{false};
int ends[2] = {-1, -1};

void wake() {
  const char byte = 0;
  [[maybe_unused]] const ssize_t written = write(ends[1], &byte, 1);
}

void handle(int) {
  const int saved = errno;
  if (count.fetch_add(1) == 1) {
    struct sigaction usual {};
    usual.sa_handler = SIG_DFL;
    for (const int signal : kSignals) {
      sigaction(signal, &usual, nullptr);
    }
  }
  wake();
  errno = saved;
}

}  // namespace

Interrupt::Interrupt(std::function<void()> now) : now_(std::move(now)) {
  PIPER_CHECK(!taken.exchange(true), "two objects that take Ctrl-C");
  PIPER_CHECK(ends[0] != -1 || pipe2(ends, O_CLOEXEC) == 0, "pipe");
  count = 0;
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
  ended_ = true;
  wake();
  watcher_.join();
  taken = false;
}

bool Interrupt::requested() const {
  return count.load() > 0;
}

void Interrupt::watch() {
  bool called = false;
  char byte = 0;
  while (!ended_ && read(ends[0], &byte, 1) == 1) {
    if (count >= 2 && !called) {
      called = true;
      now_();
    }
  }
}

}  // namespace piper

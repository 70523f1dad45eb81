#include "runtime/device/sleep.h"

#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

namespace piper {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

std::int64_t now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * kSecond + time.tv_nsec;
}

void sleep_until(std::int64_t time) {
  const timespec end{time / kSecond, time % kSecond};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, nullptr) == EINTR) {
  }
}

// How late the system wakes this thread: settles where one wake-up in eight is later. A machine
// that is busy for a moment does not move it far.
class Lateness {
 public:
  std::int64_t expected() const { return expected_; }
  void saw(std::int64_t lateness) {
    expected_ += lateness > expected_ ? 7 * kStep : -kStep;
    expected_ = std::clamp<std::int64_t>(expected_, 0, kMost);
  }

 private:
  static constexpr std::int64_t kStep = 500, kMost = 200'000;  // nanoseconds
  std::int64_t expected_ = 60'000;
};

}  // namespace

void sleep_exactly() {
  prctl(PR_SET_TIMERSLACK, 1UL);
}

Sleep::Sleep(std::uint64_t nanoseconds) : end_(now() + static_cast<std::int64_t>(nanoseconds)) {}

void Sleep::wait() const {
  thread_local Lateness lateness;
  const std::int64_t wake = end_ - lateness.expected();
  if (now() < wake) {
    sleep_until(wake);
    lateness.saw(now() - wake);
  }
  while (now() < end_) {
    sched_yield();
  }
}

}  // namespace piper

#include "runtime/device/sleep.h"

#include <sys/prctl.h>

#include <cerrno>
#include <ctime>

namespace piper {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

}  // namespace

void sleep_exactly() {
  prctl(PR_SET_TIMERSLACK, 1UL);
}

Sleep::Sleep(std::uint64_t nanoseconds) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  end_ = now.tv_sec * kSecond + now.tv_nsec + static_cast<std::int64_t>(nanoseconds);
}

void Sleep::wait() const {
  const timespec end{end_ / kSecond, end_ % kSecond};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, nullptr) == EINTR) {
  }
}

}  // namespace piper

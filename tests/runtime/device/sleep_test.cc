#include "runtime/device/sleep.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace piper {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

TEST(Sleep, NeverEndsEarly) {
  for (int i = 0; i < 50; ++i) {
    const Clock::time_point start = Clock::now();
    const Sleep sleep(300'000);
    sleep.wait();
    EXPECT_GE(Clock::now() - start, microseconds{300});
  }
}

TEST(Sleep, CountsFromWhenItWasMade) {
  const Sleep sleep(40'000'000);
  std::this_thread::sleep_for(milliseconds{60});
  const Clock::time_point start = Clock::now();
  sleep.wait();
  EXPECT_LT(Clock::now() - start, milliseconds{30});
}

}  // namespace
}  // namespace piper

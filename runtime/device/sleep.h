// Sleeping for a set time, as exactly as the system can.
//
// The system wakes a sleeper some tens of microseconds after it asked to be woken, which is
// percents of an emulated computation and would be taken for a cost of the runtime. So a sleep asks
// for less, by as much as the thread was late lately, and yields its core in a loop for what is
// left. It never ends early.
#pragma once

#include <cstdint>

namespace piper {

// Of the calling thread: the system wakes it when it asked to be woken, not up to 50 microseconds
// later.
void sleep_exactly();

// Ends `nanoseconds` after it was made, whatever was done in between.
class Sleep {
 public:
  explicit Sleep(std::uint64_t nanoseconds);
  void wait() const;

 private:
  std::int64_t end_;  // of the steady clock, nanoseconds
};

}  // namespace piper

// Keeps the weights of all ranks those of one step.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/device/cancellation.h"

namespace piper {

// Every update passes before it changes a weight. Closed once and for all when a step has failed:
// from then on none passes, not even that of a thread which comes back late.
class UpdateGate {
 public:
  // Any thread. Throws Cancelled where the gate is closed.
  void pass() {
    if ((state_.fetch_add(1) & kClosed) != 0) {
      state_.fetch_sub(1);
      throw Cancelled();
    }
  }

  // The next step: those that have passed have come to their end on every rank.
  void next_step() { state_.fetch_and(kClosed); }

  // True where none has passed in this step.
  bool close() { return (state_.fetch_or(kClosed) & ~kClosed) == 0; }

 private:
  static constexpr std::uint32_t kClosed = 1U << 31U;
  std::atomic<std::uint32_t> state_{0};  // how many have passed, and whether it is closed
};

}  // namespace piper

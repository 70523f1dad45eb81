// How far a stream is in the tasks of a plan: published by the back end, read by whoever watches a
// run from outside, as the board of a run that is stuck.
#pragma once

#include <atomic>
#include <cstdint>

namespace piper {

// Tasks are counted from the first period on, in the order of the stream.
struct alignas(64) Progress {
  std::atomic<std::uint64_t> launched{0};  // by the host thread; one that waits is not yet
  std::atomic<std::uint64_t> done{0};      // by DeviceStream::count

  // The first that is not done; what it waits for follows from the plan and the others' progress.
  std::uint64_t current() const { return done.load(std::memory_order_relaxed); }
};

}  // namespace piper

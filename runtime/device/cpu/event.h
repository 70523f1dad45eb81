// An event of the CPU: a counter, and a condition for those who wait for it to grow.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "runtime/device/cancellation.h"
#include "runtime/device/device.h"

namespace piper {

class CpuEvent final : public Event, public Sleeper {
 public:
  // A wait yields for up to `patience` before it sleeps: cheaper than a condition variable where
  // every thread has a core, and dear where it has not.
  CpuEvent(Cancellation& cancellation, std::chrono::microseconds patience);

  void record(std::uint64_t generation) override;
  void wait(std::uint64_t generation) override;
  void wake() noexcept override;

 private:
  bool reached(std::uint64_t generation) const noexcept {
    return generation_.load(std::memory_order_seq_cst) >= generation;
  }

  const Cancellation& cancellation_;
  const std::chrono::microseconds patience_;
  std::atomic<std::uint64_t> generation_{0};
  std::atomic<std::uint32_t> sleeping_{0};  // record() takes the lock only where somebody sleeps
  std::mutex mutex_;
  std::condition_variable changed_;
};

}  // namespace piper

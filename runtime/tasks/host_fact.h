// Numbers that only the run knows, and that the host must have before it can launch what needs them:
// sizes of a step, as how many rows come to each expert. It is the one thing for which a thread that
// launches waits for work that was launched.
//
//   the task that computes them   give(launch, numbers)
//   each task that needs them     await(launch), in the same period, after the plan's waits
//
// Every await is counted: a plan without such numbers has none, and its host never waits in a step.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>

#include "runtime/device/cancellation.h"
#include "runtime/device/launch.h"

namespace piper {

class HostFact final : public Sleeper {
 public:
  // `waits` counts; both outlive it.
  HostFact(std::int64_t count, Cancellation& cancellation, std::atomic<std::uint64_t>& waits);

  // Enqueues a copy of `numbers`, int64, to the host.
  void give(const Launch& launch, const at::Tensor& numbers);

  // Returns when the copy of this period, or of a later one, is there. It stays until the next
  // period's. Throws Cancelled, or what went wrong in the giver's stream.
  at::IntArrayRef await(const Launch& launch);

  void wake() noexcept override;

 private:
  const Cancellation& cancellation_;
  std::atomic<std::uint64_t>& waits_;
  at::Tensor numbers_;  // on the host
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t generation_ = 0;  // of what is there
  std::exception_ptr failure_;
};

}  // namespace piper

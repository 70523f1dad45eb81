#include "runtime/tasks/host_fact.h"

#include <ATen/ops/empty.h>

namespace piper {

HostFact::HostFact(std::int64_t count, Cancellation& cancellation,
                   std::atomic<std::uint64_t>& waits)
    : cancellation_(cancellation), waits_(waits), numbers_(at::empty({count}, at::kLong)) {
  cancellation.attach(*this);
}

void HostFact::give(const Launch& launch, const at::Tensor& numbers) {
  numbers_.copy_(numbers, /*non_blocking=*/true);
  launch.stream.then([this, generation = launch.generation](const std::exception_ptr& failure) {
    {
      const std::lock_guard lock(mutex_);
      generation_ = generation;
      failure_ = failure;
    }
    changed_.notify_all();
  });
}

at::IntArrayRef HostFact::await(const Launch& launch) {
  waits_.fetch_add(1, std::memory_order_relaxed);
  std::unique_lock lock(mutex_);
  changed_.wait(lock,
                [&] { return generation_ >= launch.generation || cancellation_.requested(); });
  if (generation_ < launch.generation) {
    throw Cancelled();
  }
  if (failure_) {
    std::rethrow_exception(failure_);
  }
  return {numbers_.const_data_ptr<std::int64_t>(), static_cast<std::size_t>(numbers_.numel())};
}

void HostFact::wake() noexcept {
  { const std::lock_guard lock(mutex_); }
  changed_.notify_all();
}

}  // namespace piper

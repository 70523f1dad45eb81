#include "runtime/exec/lane.h"

#include <chrono>

namespace piper {
namespace {

using Clock = std::chrono::steady_clock;

std::uint64_t nanoseconds(Clock::duration duration) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count());
}

}  // namespace

void Lane::run(const Period& period, const Recording& recording) {
  const Launch launch{*device_stream_, device_, period.generation, period.step, period.lr_factor};
  Clock::duration busy{};
  std::uint32_t task = stream_->tasks.begin;
  for (const Entry& entry : entries_) {
    position_.task.store(task, std::memory_order_relaxed);
    for (std::uint32_t i = 0; i < entry.waits; ++i) {
      const Awaited& awaited = awaited_[entry.first_wait + i];
      position_.wait.store(awaited.task, std::memory_order_relaxed);
      awaited.event->wait(period.generation - (awaited.previous ? 1 : 0));
    }
    position_.wait.store(Position::kRunning, std::memory_order_relaxed);
    cancellation_->throw_if_requested();

    if (entry.computes || recording.times != nullptr) {
      const Clock::time_point start = Clock::now();
      entry.body->launch(launch);
      const Clock::time_point end = Clock::now();
      busy += entry.computes ? end - start : Clock::duration{};
      if (recording.times != nullptr) {
        recording.times[task] = {nanoseconds(start - recording.start),
                                 nanoseconds(end - recording.start)};
      }
    } else {
      entry.body->launch(launch);
    }

    if (entry.records != nullptr) {
      entry.records->record(period.generation);
    }
    position_.finished.fetch_add(1, std::memory_order_relaxed);
    ++task;
  }
  busy_seconds_ = std::chrono::duration<double>(busy).count();
  position_.task.store(Position::kIdle, std::memory_order_relaxed);
}

}  // namespace piper

#include "runtime/exec/lane.h"

#include <chrono>
#include <thread>

namespace piper {
namespace {

using Clock = std::chrono::steady_clock;

std::uint64_t nanoseconds(Clock::duration duration) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count());
}

// Up to half a millisecond, the same for a seed, period, rank and task (splitmix64).
void dawdle(const StepContext& step, std::uint32_t rank, std::uint32_t task) {
  std::uint64_t x =
      step.delays + step.generation * 0x9e3779b97f4a7c15U + (std::uint64_t{rank} << 32U) + task;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  std::this_thread::sleep_for(std::chrono::microseconds((x ^ (x >> 31U)) % 500));
}

}  // namespace

void Lane::run(const StepContext& step, const Recording& recording) {
  Clock::duration busy{};
  std::uint32_t task = stream_->tasks.begin;
  for (const Entry& entry : entries_) {
    position_.task.store(task, std::memory_order_relaxed);
    for (std::uint32_t i = 0; i < entry.waits; ++i) {
      const Awaited& awaited = awaited_[entry.first_wait + i];
      position_.wait.store(awaited.task, std::memory_order_relaxed);
      awaited.event->wait(step.generation - (awaited.previous ? 1 : 0));
    }
    position_.wait.store(Position::kRunning, std::memory_order_relaxed);
    cancellation_->throw_if_requested();
    if (step.delays != 0) {
      dawdle(step, rank_, task);
    }

    if (entry.computes || recording.times != nullptr) {
      const Clock::time_point start = Clock::now();
      entry.body->run(step);
      const Clock::time_point end = Clock::now();
      busy += entry.computes ? end - start : Clock::duration{};
      if (recording.times != nullptr) {
        recording.times[task] = {nanoseconds(start - recording.start),
                                 nanoseconds(end - recording.start)};
      }
    } else {
      entry.body->run(step);
    }

    if (entry.records != nullptr) {
      entry.records->record(step.generation);
    }
    position_.finished.fetch_add(1, std::memory_order_relaxed);
    ++task;
  }
  busy_seconds_ = std::chrono::duration<double>(busy).count();
  position_.task.store(Position::kIdle, std::memory_order_relaxed);
}

}  // namespace piper

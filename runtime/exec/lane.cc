#include "runtime/exec/lane.h"

#include <chrono>

namespace piper {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

void Lane::run(const StepContext& step) {
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

    if (entry.computes) {
      const Clock::time_point start = Clock::now();
      entry.body->run(step);
      busy += Clock::now() - start;
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

#include "runtime/device/cpu/event.h"

#include <thread>

namespace piper {

CpuEvent::CpuEvent(Cancellation& cancellation, std::chrono::microseconds patience)
    : cancellation_(cancellation), patience_(patience) {
  cancellation.attach(*this);
}

// Either this store comes before the waiter's last look at the counter, or the waiter's count
// comes before this look at `sleeping_`: all four are sequentially consistent.
void CpuEvent::record(std::uint64_t generation) {
  generation_.store(generation, std::memory_order_seq_cst);
  if (sleeping_.load(std::memory_order_seq_cst) > 0) {
    wake();
  }
}

void CpuEvent::wait(std::uint64_t generation) {
  if (reached(generation)) {
    return;
  }
  if (patience_.count() > 0) {
    const auto end = std::chrono::steady_clock::now() + patience_;
    do {
      std::this_thread::yield();
      if (reached(generation)) {
        return;
      }
    } while (std::chrono::steady_clock::now() < end);
  }
  sleeping_.fetch_add(1, std::memory_order_seq_cst);
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return reached(generation) || cancellation_.requested(); });
  }
  sleeping_.fetch_sub(1, std::memory_order_seq_cst);
  if (!reached(generation)) {
    throw Cancelled();
  }
}

void CpuEvent::wake() noexcept {
  { const std::lock_guard lock(mutex_); }
  changed_.notify_all();
}

}  // namespace piper

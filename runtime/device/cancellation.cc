#include "runtime/device/cancellation.h"

namespace piper {

void Cancellation::request() noexcept {
  requested_.store(true, std::memory_order_release);
  const std::lock_guard lock(mutex_);
  for (Sleeper* sleeper : sleepers_) {
    sleeper->wake();
  }
}

void Cancellation::attach(Sleeper& sleeper) {
  const std::lock_guard lock(mutex_);
  sleepers_.push_back(&sleeper);
}

}  // namespace piper

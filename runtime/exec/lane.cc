#include "runtime/exec/lane.h"

namespace piper {

void Lane::add(const Entry& entry) {
  entries_.push_back(entry);
  times_.emplace_back();
}

void Lane::launch(const Period& period) {
  const Launch launch{*device_stream_, device_, period.generation, period.step, period.lr_factor};
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    for (std::uint32_t w = 0; w < entry.waits; ++w) {
      const Awaited& awaited = awaited_[entry.first_wait + w];
      awaited.event->wait(period.generation - (awaited.previous ? 1 : 0));
    }
    cancellation_->throw_if_requested();

    if (entry.computes || period.timed) {
      device_stream_->stamp(times_[i].begin);
      entry.body->launch(launch);
      device_stream_->stamp(times_[i].end);
    } else {
      entry.body->launch(launch);
    }

    if (entry.records != nullptr) {
      entry.records->record(period.generation);
    }
    progress_.launched.store(end_of(period.generation - 1) + i + 1, std::memory_order_relaxed);
    device_stream_->count(progress_.done);
  }
}

std::uint64_t Lane::busy() const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    sum += entries_[i].computes ? times_[i].end - times_[i].begin : 0;
  }
  return sum;
}

}  // namespace piper

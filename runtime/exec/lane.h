// The executor loop: one stream of one rank.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "core/base/spans.h"
#include "core/plan/plan.h"
#include "runtime/device/cancellation.h"
#include "runtime/device/device.h"
#include "runtime/device/progress.h"
#include "runtime/tasks/task.h"

namespace piper {

// What is the same for all tasks of a period.
struct Period {
  std::uint64_t generation = 0;
  std::int64_t step = 0;
  double lr_factor = 1;
  bool timed = false;  // every task, not computations alone
};

class Lane {
 public:
  struct Awaited {
    Event* event;
    std::uint32_t task;
    bool previous;
  };
  struct Entry {
    TaskBody* body;
    Event* records;  // may be null
    std::uint32_t first_wait, waits;
    bool computes;
  };

  // `local`: the place of the rank among the local ones.
  Lane(std::uint32_t rank, std::size_t local, const Program& program, const Stream& stream,
       DeviceStream& device_stream, DeviceId device, const Cancellation& cancellation)
      : rank_(rank),
        local_(local),
        program_(&program),
        stream_(&stream),
        device_stream_(&device_stream),
        device_(device),
        cancellation_(&cancellation) {}

  // In the order of the stream's tasks.
  void add(const Entry& entry);
  void add(const Awaited& awaited) { awaited_.push_back(awaited); }
  std::uint32_t waits() const { return static_cast<std::uint32_t>(awaited_.size()); }

  // Launches one period, on the stream's host thread. Whatever a task throws comes through.
  void launch(const Period& period);

  std::uint32_t rank() const { return rank_; }
  std::size_t local() const { return local_; }
  const Program& program() const { return *program_; }
  const Stream& stream() const { return *stream_; }
  DeviceStream& device_stream() const { return *device_stream_; }

  // How many tasks were done when all of period `generation` are; it counts them from there back.
  std::uint64_t end_of(std::uint64_t generation) const { return generation * entries_.size(); }
  const Progress& progress() const { return progress_; }
  const std::vector<Awaited>& awaited() const { return awaited_; }
  const Entry& entry(std::uint64_t position) const { return entries_[position]; }

  // Of the period that has ended, in the device's time: from when each task's waits were over to
  // its end. Tasks that were not timed have no length.
  const std::vector<TimeSpan>& times() const { return times_; }
  std::uint64_t busy() const;  // computations, nanoseconds

 private:
  std::uint32_t rank_;
  std::size_t local_;
  const Program* program_;
  const Stream* stream_;
  DeviceStream* device_stream_;
  DeviceId device_;
  const Cancellation* cancellation_;
  std::vector<Entry> entries_;
  std::vector<Awaited> awaited_;  // of all entries, one after the other
  std::vector<TimeSpan> times_;   // by entry
  Progress progress_;
};

}  // namespace piper

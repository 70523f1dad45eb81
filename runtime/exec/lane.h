// The executor loop: one stream of one rank.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "core/plan/plan.h"
#include "core/simulate/simulate.h"
#include "runtime/device/cancellation.h"
#include "runtime/device/device.h"
#include "runtime/tasks/task.h"

namespace piper {

// Where a lane is: written by its thread, read by whoever makes the progress board.
struct alignas(64) Position {
  static constexpr std::uint32_t kIdle = 0xffffffff;     // not started, or at the end
  static constexpr std::uint32_t kRunning = 0xffffffff;  // in `wait`: waits for nothing

  std::atomic<std::uint32_t> task{kIdle};     // index into the program's tasks
  std::atomic<std::uint32_t> wait{kRunning};  // index into the program's tasks
  std::atomic<std::uint64_t> finished{0};     // tasks, since the start
};

// What is the same for all tasks of a period.
struct Period {
  std::uint64_t generation = 0;
  std::int64_t step = 0;
  double lr_factor = 1;
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
  void add(const Entry& entry) { entries_.push_back(entry); }
  void add(const Awaited& awaited) { awaited_.push_back(awaited); }
  std::uint32_t waits() const { return static_cast<std::uint32_t>(awaited_.size()); }

  // Where the times of tasks go, counted from `start`; by index into the program's tasks.
  struct Recording {
    TimeSpan* times = nullptr;  // null: nowhere
    std::chrono::steady_clock::time_point start;
  };

  // One period. Whatever a task throws comes through; position() then says which.
  void run(const Period& period, const Recording& recording);

  std::uint32_t rank() const { return rank_; }
  std::size_t local() const { return local_; }
  DeviceStream& device_stream() const { return *device_stream_; }
  const Program& program() const { return *program_; }
  const Stream& stream() const { return *stream_; }
  const Position& position() const { return position_; }
  double busy_seconds() const {
    return busy_seconds_;
  }  // of the last period: compute without waits

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
  Position position_;
  double busy_seconds_ = 0;
};

}  // namespace piper

// What the executor needs of a device: streams that run jobs in order, and events between them.
//
// Each stream has a host thread of its own; record() and wait() act on the stream whose thread
// calls them. On a CPU they are done when they return; a device with queues of its own may only
// have queued them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace piper {

// A mark in a stream's work. It is recorded again and again; the generation, which only grows, says
// which time.
class Event {
 public:
  virtual ~Event() = default;

  // What the calling stream has done so far is generation `generation` of this event.
  virtual void record(std::uint64_t generation) = 0;

  // What the calling stream does from here on comes after the record of `generation`, or a later
  // one. Generation 0 needs no record. Throws Cancelled.
  virtual void wait(std::uint64_t generation) = 0;
};

// Runs jobs one after the other, in the order in which they were enqueued.
class DeviceStream {
 public:
  // Ends after the job that runs; jobs that have not started are dropped.
  virtual ~DeviceStream() = default;

  // Any thread. The job must not throw.
  virtual void enqueue(std::function<void()> job) = 0;

  // Gives up on a job that never returns: the destructor does not wait for it. All that the job
  // can reach must then live as long as the process.
  virtual void abandon() = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual std::unique_ptr<Event> make_event() = 0;

  // `on_start` runs first on the stream's thread.
  virtual std::unique_ptr<DeviceStream> make_stream(const std::string& name,
                                                    std::function<void()> on_start) = 0;
};

}  // namespace piper

// What the executor needs of a device: streams that run work in order, and events between them.
//
// Each stream has a host thread of its own, which launches; record() and wait() act on the stream
// whose thread calls them. On a CPU work is done when its launch returns; a device with queues of
// its own may only have queued it. launch.h has the rules.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>

namespace piper {

// A device as LibTorch counts them: c10::DeviceType and index (-1: the only one). Not c10::Device,
// so that streams and executor are built, and run under sanitizers, without LibTorch.
struct DeviceId {
  std::int8_t type = 0, index = -1;  // 0: the CPU
  bool operator==(const DeviceId&) const = default;
};

// A mark in a stream's work. It is recorded again and again; the generation, which only grows, says
// which time.
class Event {
 public:
  virtual ~Event() = default;

  // What the calling stream has been given so far is generation `generation` of this event.
  virtual void record(std::uint64_t generation) = 0;

  // What the calling stream is given from here on comes after the record of `generation`, or a
  // later one. Generation 0 needs no record. Throws Cancelled.
  virtual void wait(std::uint64_t generation) = 0;
};

// Runs work in the order in which it was given.
class DeviceStream {
 public:
  // Ends after the job that runs; jobs that have not started are dropped.
  virtual ~DeviceStream() = default;

  // Any thread. Runs on the stream's host thread, where it launches; must not throw.
  virtual void enqueue(std::function<void()> job) = 0;

  // Called on the host thread; they act when what the stream was given so far is done.
  virtual void stamp(std::uint64_t& time) = 0;  // becomes Device::now(), nanoseconds
  virtual void count(std::atomic<std::uint64_t>& counter) = 0;  // becomes one more
  // Makes the call, on any thread, with what went wrong in the stream's work, if anything did: then
  // the rest of the work is not done, nor counted. The call is quick and does not throw.
  virtual void then(std::function<void(std::exception_ptr)> call) = 0;

  // Gives up on a job that never returns: the destructor does not wait for it. All that the job
  // can reach must then live as long as the process.
  virtual void abandon() = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual DeviceId id() const = 0;
  virtual std::uint64_t now() const = 0;  // its clock, nanoseconds

  virtual std::unique_ptr<Event> make_event() = 0;

  // `on_start` runs first on the stream's thread.
  virtual std::unique_ptr<DeviceStream> make_stream(const std::string& name,
                                                    std::function<void()> on_start) = 0;
};

}  // namespace piper

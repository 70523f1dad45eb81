// How a run ends early: one flag, and everything that sleeps is woken to see it.
#pragma once

#include <atomic>
#include <exception>
#include <mutex>
#include <vector>

namespace piper {

// Thrown by a wait that a cancellation ended. Never leaves the thread of a stream.
class Cancelled : public std::exception {
 public:
  const char* what() const noexcept override { return "cancelled"; }
};

// Something on which a thread may sleep.
class Sleeper {
 public:
  virtual ~Sleeper() = default;
  // Makes every thread that sleeps here look at the cancellation again.
  virtual void wake() noexcept = 0;
};

// A sleeper stays attached for good, so it lives until no thread calls request() any more.
class Cancellation {
 public:
  bool requested() const noexcept { return requested_.load(std::memory_order_acquire); }
  void throw_if_requested() const {
    if (requested()) [[unlikely]] {
      throw Cancelled();
    }
  }

  // Any thread, any number of times. Not for signal handlers: it takes locks.
  void request() noexcept;

  void attach(Sleeper& sleeper);

 private:
  std::atomic<bool> requested_{false};
  std::mutex mutex_;
  std::vector<Sleeper*> sleepers_;
};

}  // namespace piper

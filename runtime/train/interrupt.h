// Ctrl-C, while a job runs.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include <csignal>

namespace piper {

// From construction to destruction, SIGINT and SIGTERM are counted instead of ending the process.
// The first asks the loop to stop after its step; the second calls `now`, on a thread of this
// object; the third, whichever it is, ends the process as usual. At most one object at a time.
class Interrupt {
 public:
  explicit Interrupt(std::function<void()> now);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool requested() const;

 private:
  void watch();

  std::function<void()> now_;
  std::atomic<bool> ended_{false};
  struct sigaction before_[2] = {};
  std::thread watcher_;
};

}  // namespace piper

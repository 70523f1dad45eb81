// A stream of the CPU: one thread and its queue.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "runtime/device/device.h"

namespace piper {

class CpuStream final : public DeviceStream {
 public:
  // The first 15 bytes of `name` name the thread.
  CpuStream(const std::string& name, std::function<void()> on_start);
  ~CpuStream() override;

  void enqueue(std::function<void()> job) override;
  void stamp(std::uint64_t& time) override { time = now(); }
  void count(std::atomic<std::uint64_t>& counter) override {
    counter.fetch_add(1, std::memory_order_relaxed);
  }
  void then(std::function<void(std::exception_ptr)> call) override { call(nullptr); }
  void abandon() override;

  static std::uint64_t now();  // of the steady clock

 private:
  // Shared with the thread, so that an abandoned one finds it.
  struct Queue {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::function<void()>> jobs;
    bool ended = false;
  };
  static void work(const std::shared_ptr<Queue>& queue);

  std::shared_ptr<Queue> queue_ = std::make_shared<Queue>();
  std::thread thread_;
};

}  // namespace piper

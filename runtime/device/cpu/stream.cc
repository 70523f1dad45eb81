#include "runtime/device/cpu/stream.h"

#include <pthread.h>

#include <chrono>

namespace piper {

CpuStream::CpuStream(const std::string& name, std::function<void()> on_start)
    : thread_([queue = queue_, on_start = std::move(on_start)] {
        on_start();
        work(queue);
      }) {
  pthread_setname_np(thread_.native_handle(), name.substr(0, 15).c_str());
}

CpuStream::~CpuStream() {
  {
    const std::lock_guard lock(queue_->mutex);
    queue_->ended = true;
  }
  queue_->changed.notify_one();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void CpuStream::enqueue(std::function<void()> job) {
  {
    const std::lock_guard lock(queue_->mutex);
    queue_->jobs.push_back(std::move(job));
  }
  queue_->changed.notify_one();
}

std::uint64_t CpuStream::now() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::steady_clock::now().time_since_epoch())
                                        .count());
}

void CpuStream::abandon() {
  thread_.detach();
}

void CpuStream::work(const std::shared_ptr<Queue>& queue) {
  for (;;) {
    std::function<void()> job;
    {
      std::unique_lock lock(queue->mutex);
      queue->changed.wait(lock, [&] { return queue->ended || !queue->jobs.empty(); });
      if (queue->ended) {
        return;
      }
      job = std::move(queue->jobs.front());
      queue->jobs.pop_front();
    }
    job();
  }
}

}  // namespace piper

// Tasks of an engine with something before or after them: what EngineParts::wrap makes.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "core/base/random.h"
#include "core/plan/plan.h"
#include "runtime/tasks/task.h"

namespace piper::test {

using Wrap = std::function<std::unique_ptr<TaskBody>(std::uint32_t rank, const Task& task,
                                                     std::unique_ptr<TaskBody> body)>;

class WrappedTask final : public TaskBody {
 public:
  using Hook = std::function<void(const Launch&)>;
  WrappedTask(std::unique_ptr<TaskBody> body, Hook before, Hook after = {})
      : body_(std::move(body)), before_(std::move(before)), after_(std::move(after)) {}

  void launch(const Launch& launch) override {
    if (before_) {
      before_(launch);
    }
    body_->launch(launch);
    if (after_) {
      after_(launch);
    }
  }

 private:
  std::unique_ptr<TaskBody> body_;
  Hook before_, after_;
};

// Tasks begin up to half a millisecond late, the same for a seed, period, rank and task;
// in time while the seed is 0.
inline Wrap delays(std::shared_ptr<const std::uint64_t> seed) {
  return [seed](std::uint32_t rank, const Task& task, std::unique_ptr<TaskBody> body) {
    const std::uint64_t place = (std::uint64_t{rank} << 32U) + index(task.node);
    return std::make_unique<WrappedTask>(std::move(body), [seed, place](const Launch& launch) {
      if (*seed != 0) {
        const std::uint64_t bits = mix(*seed + launch.generation * kGolden + place);
        std::this_thread::sleep_for(std::chrono::microseconds(bits % 500));
      }
    });
  };
}

}  // namespace piper::test

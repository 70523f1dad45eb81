// A task of the plan, resolved: what it needs is found once, at prepare, and held by pointer.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace piper {

// What is the same for all tasks of one period.
struct StepContext {
  std::uint64_t generation = 0;  // of the plan's period, from 1
  std::int64_t step = 0;         // the optimizer's count
  double lr_factor = 1;
  std::uint64_t delays = 0;  // for tests, StepInput::delays
};

class TaskBody {
 public:
  virtual ~TaskBody() = default;

  // On the thread of the task's stream. Any exception ends the run on all ranks.
  virtual void run(const StepContext& step) = 0;
};

// A failure with a code of its own; all others have the code "run.failed".
class TaskFailure : public std::runtime_error {
 public:
  TaskFailure(std::string code, const std::string& message)
      : std::runtime_error(message), code_(std::move(code)) {}
  const std::string& code() const { return code_; }

 private:
  std::string code_;
};

}  // namespace piper

// A task of the plan, resolved: what it needs is found once, at prepare, and held by pointer.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "runtime/device/launch.h"

namespace piper {

class TaskBody {
 public:
  virtual ~TaskBody() = default;

  // On the host thread of the task's stream; launch.h says what may be left to do when it returns.
  // Any exception ends the run on all ranks.
  virtual void launch(const Launch& launch) = 0;
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

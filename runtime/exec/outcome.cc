#include "runtime/exec/outcome.h"

#include <utility>

namespace piper {

void Outcome::fail(Diagnostic diagnostic) {
  {
    const std::lock_guard lock(mutex_);
    if (!first_) {
      first_ = std::move(diagnostic);
    }
  }
  cancellation_.request();
}

Status Outcome::status() const {
  const std::lock_guard lock(mutex_);
  return first_ ? Status(piper::fail(*first_)) : Status();
}

}  // namespace piper

// How a run ended: the first thing that went wrong, whoever saw it.
#pragma once

#include <mutex>
#include <optional>

#include "core/base/diagnostic.h"
#include "runtime/device/cancellation.h"

namespace piper {

class Outcome {
 public:
  explicit Outcome(Cancellation& cancellation) : cancellation_(cancellation) {}

  // Keeps `diagnostic` if it is the first, and ends everything. Any thread.
  void fail(Diagnostic diagnostic);

  Status status() const;

 private:
  Cancellation& cancellation_;
  mutable std::mutex mutex_;
  std::optional<Diagnostic> first_;
};

}  // namespace piper

// One of a thing for each micro-batch. `Task::microbatch` is the number of a chain where a task
// gathers or reduces a bucket, and a bucket may have more chains than a plan has micro-batches.
#pragma once

#include <string>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/plan/plan.h"

namespace piper {

// One T a micro-batch of a plan, found by the task. Asked for a task that has none, it stops the
// program, where an index would reach past the end.
template <typename T>
class PerMicrobatch {
 public:
  explicit PerMicrobatch(const Plan& plan) : of_(plan.microbatches) {}

  T& operator[](const Task& task) { return of_[number(task)]; }
  const T& operator[](const Task& task) const { return of_[number(task)]; }

 private:
  std::size_t number(const Task& task) const {
    PIPER_CHECK(has_microbatch(task.op) && task.microbatch < of_.size(),
                std::string(to_string(task.op)) + " " + std::to_string(task.microbatch) + " of " +
                    std::to_string(of_.size()) + " micro-batches");
    return task.microbatch;
  }

  std::vector<T> of_;
};

}  // namespace piper

// Which tasks have a micro-batch. `Task::microbatch` is the number of a chain where a task gathers
// or reduces a bucket, and a bucket may have more chains than a plan has micro-batches; other tasks
// of buckets, scalars and inputs leave it 0.
#pragma once

#include <string>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/plan/plan.h"

namespace piper {

inline bool counts_chains(Op op) {
  return op == Op::all_gather || op == Op::reduce_scatter;
}
inline bool has_microbatch(Op op) {
  return op <= Op::recompute || is_point_to_point(op) || op == Op::all_to_all;
}

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

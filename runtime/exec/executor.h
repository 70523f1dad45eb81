// Runs one plan, period after period, on the threads of the local ranks. It looks at no strategy and no
// op: every stream waits, launches and records as the plan says.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/ir/model_graph.h"
#include "core/plan/plan.h"
#include "runtime/device/device.h"
#include "runtime/exec/lane.h"
#include "runtime/exec/outcome.h"
#include "runtime/exec/workers.h"
#include "runtime/tasks/task.h"

namespace piper {

// The resolved tasks of one rank, by TaskId.
using Bodies = std::vector<std::unique_ptr<TaskBody>>;

class Executor {
 public:
  // Of the local `ranks`, with their bodies. The plan, the model and the rest outlive the executor.
  // Makes all events.
  Executor(const Plan& plan, const ModelGraph& model, const std::vector<std::uint32_t>& ranks,
           std::vector<Bodies> bodies, Device& device, Workers& workers,
           const Cancellation& cancellation, Outcome& outcome);

  // One period; blocks until every stream has ended it. The first failure anywhere ends it
  // everywhere. Where nothing moves for `timeout`, the run is stuck: run.stuck, with the progress
  // board. Codes: run.failed, run.stuck, those of TaskFailure, and what else `outcome` was told.
  // `times`, where it is wanted, gets from when each task's waits were over to its end: nanoseconds
  // since the start of the period, by local rank and task.
  Status run(std::int64_t step, double lr_factor, std::chrono::duration<double> timeout,
             Spans* times = nullptr);

  double busy_seconds() const;  // of the last period, over all ranks

  // True where some task did not come back after a failure: its thread still runs, so nothing that
  // it can reach may be destroyed.
  bool wedged() const { return wedged_; }

 private:
  void run_lane(Lane& lane, const Lane::Recording& recording) noexcept;
  Diagnostic failure(const Lane& lane, std::string code, const char* what) const;
  Diagnostic board(std::chrono::duration<double> timeout) const;
  std::uint64_t progress() const;

  const Plan& plan_;
  const ModelGraph& model_;
  Workers& workers_;
  Outcome& outcome_;
  std::vector<Bodies> bodies_;
  std::vector<std::unique_ptr<Event>> events_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  Period period_;
  std::mutex mutex_;
  std::condition_variable done_;
  std::size_t running_ = 0;  // lanes
  bool wedged_ = false;
};

}  // namespace piper

// Runs one plan, period after period, on the threads of the local ranks. It looks at no strategy and no
// op: every stream waits, launches and records as the plan says.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
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

  // Starts a period on every stream. `timed`: times() will be there. Errors: the run has failed.
  Status start(std::int64_t step, double lr_factor, bool timed = false);

  // Blocks until every stream has done all of it. The first failure anywhere ends it everywhere.
  // Where nothing moves for `timeout`, the run is stuck: run.stuck, with the progress board. Codes:
  // run.failed, run.stuck, those of TaskFailure, and what else `outcome` was told.
  Status finish(std::chrono::duration<double> timeout);

  Status run(std::int64_t step, double lr_factor, std::chrono::duration<double> timeout,
             bool timed = false) {
    PIPER_TRY(start(step, lr_factor, timed));
    return finish(timeout);
  }

  // Of the last period. By local rank and task: from when a task's waits were over to its end,
  // nanoseconds of the device since the start of the period.
  Spans times() const;
  // By local rank: time in computations, nanoseconds.
  std::vector<std::int64_t> busy() const;

  // True where some task did not come back after a failure: its thread still runs, so nothing that
  // it can reach may be destroyed.
  bool wedged() const { return wedged_; }

 private:
  void run_lane(Lane& lane) noexcept;
  void fail(const Lane& lane, std::exception_ptr error);
  Diagnostic failure(const Lane& lane, std::string code, const char* what) const;
  Diagnostic board(std::chrono::duration<double> timeout) const;
  // The task that the first task of `lane` that is not done waits for; null: none.
  const Task* awaited(const Lane& lane) const;
  std::uint64_t progress() const;

  const Plan& plan_;
  const ModelGraph& model_;
  Workers& workers_;
  Outcome& outcome_;
  std::vector<Bodies> bodies_;
  std::vector<std::unique_ptr<Event>> events_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<std::vector<const Lane*>> lane_of_;  // by local rank and StreamId
  Device& device_;
  Period period_;
  std::uint64_t started_ = 0;  // the period, in the device's time
  std::mutex mutex_;
  std::condition_variable done_;
  std::size_t running_ = 0;  // lanes
  bool wedged_ = false;
};

}  // namespace piper

// Runs plans: the ranks of this process, their streams, parameters, gradients and optimizer. No
// data, no files, no loop over steps: see runtime/train for those.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/base/spans.h"
#include "core/runtime_interface.h"
#include "runtime/data/batch.h"
#include "runtime/tasks/parts.h"

namespace piper {

struct StepInput {
  std::int64_t step = 0;  // 1 for the first training step: the optimizer's count
  double lr_factor = 1;   // of the schedule, multiplies every group's lr
  std::function<Batch(std::uint32_t rank)>
      batch;            // called on the calling thread, once a local rank
  bool record = false;  // StepResult::times and moved
};

// A part of a parameter on one rank: elements `begin` and on, flat, in the rank's memory.
struct ParameterPart {
  ParameterId parameter;
  std::int64_t begin = 0;
  at::Tensor elements;
};

// Vectors are by local rank.
struct StepResult {
  double loss = 0;          // global sum of token losses / global count; NaN where that is 0
  std::int64_t tokens = 0;  // global count of valid labels; 0: no update was made
  double grad_norm = 0;     // before clipping (0 for evaluation)
  bool finite = true;       // false: no update was made
  bool updated() const { return finite && tokens > 0; }
  double seconds = 0;
  std::vector<std::int64_t> busy_ns;     // time in computations
  std::vector<std::int64_t> peak_bytes;  // since the start
  std::vector<std::int64_t> live_bytes;  // when the step is over
  // Each kind's own most; what a computation needs for a while counts as activation.
  std::vector<std::array<std::int64_t, kMemoryKinds>> peak_of_kind;
  // Where asked for, by local rank and task: from when its waits were over to its end, nanoseconds
  // since the start of the step. A transfer's time includes its wait for the other end.
  Spans times;
  // The same for bytes that sends, reductions of gradients and gathers moved between the rank and
  // others: what a ring of the ranks would send. (A slice of an all-reduce is whole cache lines, so
  // its members' figures differ a little.)
  std::vector<std::vector<std::int64_t>> moved;
};

class Engine {
 public:
  virtual ~Engine() = default;

  // prepare: one LiveModel, communicators' list, buffers; initialise: threads, communicators,
  // parameters by name. After it, steps create no stream, event or communicator.
  static Expected<std::unique_ptr<Engine>> create(const Job& job);

  // One period of the plan on every rank; blocks until all have ended. The first exception on any
  // rank ends the step on all ranks, and comes back as an error with that rank, task, micro-batch
  // and stage; the engine is then unusable.
  virtual Expected<StepResult> train_step(const StepInput& input) = 0;
  virtual Expected<StepResult> evaluate_step(const StepInput& input) = 0;

  // Whether the weights of all ranks are those of one step, the last that has ended well: always
  // between steps, and after a step that failed before any rank had begun its update. After a step
  // that failed, no update begins any more once this was asked.
  virtual bool is_whole() = 0;

  // Ends a running step from another thread or a signal-safe flag (Ctrl-C, timeout): it returns an
  // error soon.
  virtual void cancel(const std::string& why) = 0;

  // The ranks that live in this process, ascending. Steps are about them alone.
  virtual const std::vector<std::uint32_t>& local_ranks() const = 0;

  // What a local rank holds, in the order of its buckets, without the others. Writing to `elements`
  // sets it: whoever does keeps replicas, and a value and its master, alike. Between steps only.
  virtual std::vector<ParameterPart> parts(std::uint32_t rank, Kept what) const = 0;

  // The ranks, anywhere, on which a parameter has a home, ascending.
  virtual std::vector<std::uint32_t> homes(ParameterId id) const = 0;
  // Brings a parameter as rank `home` has it, together with the ranks that it shares it with, to
  // rank `to`, in pieces of at most 64 MiB: a copy, in host memory. Undefined in the process of
  // other ranks, and where no such thing is kept or `home` is none. Every process calls it, with
  // the same arguments. Between steps only.
  virtual at::Tensor gather(Kept what, ParameterId id, std::uint32_t home,
                            std::uint32_t to = 0) const = 0;
  // The same of one number a local rank: those of all ranks, in their order.
  virtual std::vector<std::int64_t> gather(const std::vector<std::int64_t>& numbers,
                                           std::uint32_t to = 0) const = 0;
  at::Tensor parameter(std::uint32_t home, ParameterId id) const {
    return gather(Kept::value, id, home);
  }
  at::Tensor master(std::uint32_t home, ParameterId id) const {
    return gather(Kept::master, id, home);
  }
  // Of the last train_step, reduced and unclipped; kept only when keep_gradients(true) was called
  // before it.
  at::Tensor gradient(std::uint32_t home, ParameterId id) const {
    return gather(Kept::gradient, id, home);
  }
  virtual void keep_gradients(bool keep) = 0;

  // Sets a parameter (and its master) on every local home. Between steps only.
  virtual void set_parameter(ParameterId id, const at::Tensor& value) = 0;
};

}  // namespace piper

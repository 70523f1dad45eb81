// The narrow door between the `piper` program and libpiper_runtime.so, which it opens only when a
// command needs tensors.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/base/output_check.h"
#include "core/config/config.h"
#include "core/ir/model_graph.h"
#include "core/plan/plan.h"

namespace piper {

// A planned job: all that a run needs.
struct Job {
  Config config;
  ModelGraph model;
  Plans plans;
};

struct TrainOptions {
  std::string
      save_gradients;    // FILE.safetensors: the first step's reduced, unclipped gradients; "" = no
  bool progress = true;  // a line that is rewritten in place, where standard error is a terminal
  std::string save_costs = {};  // FILE.toml: the last step's computations, for [cost] file; "" = no
};

// What the last line of `piper train` says.
struct TrainSummary {
  std::int64_t steps = 0;
  std::optional<double> loss;           // of the last step that had counted labels
  std::optional<double> held_out_loss;  // after the last step; none: nothing is held out
  double tokens_per_second = 0, seconds = 0;
  bool interrupted = false;  // Ctrl-C
  std::string weights;       // the folder that they were saved in; "": they were not
  Diagnostics problems;  // of saving: the job has trained, but something is not where it should be
};

struct VerifyOptions {
  std::int64_t steps = 1;
  double break_scaling = 1;  // for tests: multiplies the run's gradients, so that verify must fail
};

struct VerifyReport {
  bool passed = false;
  std::string text;  // a line a parameter: worst difference and where, then the verdict
};

struct CheckOptions {
  bool whole_data = false;      // look at all data; otherwise at what fits into two seconds
  std::vector<Output> outputs;  // that the command will write: they can be written,
  std::vector<Input> inputs;    // and are none of these, beside the data files
  bool progress = true;         // show how far a long look is, where standard error is a terminal
};

// What a look at the files of a job found, beside errors.
struct CheckReport {
  Diagnostics remarks;             // warnings: data and weights that do not go with the job
  std::vector<std::string> lines;  // for standard output: how much was looked at
};

class Runtime {
 public:
  virtual ~Runtime() = default;

  // Runs the model once on the meta device. Any thread; allocates no parameters.
  virtual Expected<ModelGraph> capture(const Config& config) = 0;

  // Checks what can be checked without starting a thread: data files, weights, shapes, outputs.
  // Called before train and verify; leaves nothing behind.
  virtual Expected<CheckReport> check(const Job& job, const CheckOptions& options) = 0;

  // Checks that this runtime can run both plans: runtime.unsupported. Called before train and
  // verify.
  virtual Status check_plans(const Job& job) = 0;

  // Blocks until the job has ended. An error is a failure while running (exit status 1).
  virtual Expected<TrainSummary> train(const Job& job, const TrainOptions& options) = 0;
  virtual Expected<VerifyReport> verify(const Job& job, const VerifyOptions& options) = 0;
};

}  // namespace piper

// The only symbol that the program looks up. Never null; owned by the library, lives as long as the
// process.
extern "C" piper::Runtime* piper_runtime();

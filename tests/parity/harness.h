// Jobs as a user writes them: a TOML text, the real plugin, the real planner; and batches that hide
// nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/runtime_interface.h"
#include "runtime/exec/engine.h"
#include "runtime/model/build.h"
#include "runtime/train/verify.h"

namespace piper::testing {

// A schedule of a plugin.
struct Schedule {
  const char *plugin, *name;
  std::uint32_t stages_per_rank;
};
std::ostream& operator<<(std::ostream& out, const Schedule& schedule);  // its name

struct Case {
  std::uint32_t pp = 1, dp = 1, microbatches = 1;
  std::int64_t rows = 0;  // 0: a number that neither dp nor the micro-batches divide
  std::string plugin = "interleaved1f1b", schedule = "1f1b";
  std::uint32_t stages_per_rank = 0;  // 0: the schedule's default
  bool pipeline_of_one = false;       // the schedule also where pp is 1
  std::string zero;                   // options of plugin zero, a line each; "": without it
  std::string dtype = "float64";
  bool tied = false;
  double dropout = 0;
  std::uint32_t layers = 4;
  std::string optimizer = "sgd";  // or "adamw"
  double max_norm = 0;
  std::vector<std::string> freeze;
  std::vector<std::string> model;     // further lines of [model], in place of the small Qwen3
  std::vector<std::string> training;  // further lines of [training]
  std::vector<std::string> sections;  // further sections
  std::int64_t seq_len = 6;

  std::int64_t global_rows() const;
};
Case case_of(const Schedule& schedule);
std::string to_string(const Case& c);

// Loads, captures, runs the strategy and plans. Two micro-batches of a rank, or of two ranks, never
// have the same number of rows or counted labels if it can be helped.
// The model may be one that is not looked up by name.
Expected<Job> make_job(const Case& c, ModelFunction model = nullptr);

// The same where it cannot fail; an empty job, and a failed test, where it does.
Job job_of(const Case& c);

// The small Qwen3 is one that no size divides evenly.
inline constexpr std::int64_t kVocab = 37;

// Tokens from a generator keyed by the step; row r of the batch ignores another number of labels
// than the next, and all of the last micro-batch of the first data-parallel rank's rows, where
// there are several micro-batches or ranks.
GlobalBatch uneven_batches(const Job& job);

// The rows of a batch, handed out as the plan's ranks want them.
StepInput feed(const Plan& plan, const Batch& global, std::int64_t step, double lr_factor = 1);

}  // namespace piper::testing

// What the benchmarks that train share: jobs of their own, and steps of them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "bench/report.h"
#include "core/runtime_interface.h"
#include "runtime/data/loader.h"
#include "runtime/exec/engine.h"

namespace piper::bench {

// A job file in TOML, captured and planned with the plugins of this build.
Job make_job(const Scratch& scratch, const std::string& text);

// [model], [mesh], [training] and [optimizer] of the model of measured PyTorch runs: 8 layers of
// width 256, bytes, 8 micro-batches of 2 sequences of 256, float32, SGD.
std::string language_model(int pp);

// Rows of bytes, at random, for every input of the model.
Batch random_batch(const Job& job);

class Run {
 public:
  Run(Job job, Batch batch);

  StepResult step(bool record = false);
  const Job& job() const { return job_; }
  const Plan& plan() const { return job_.plans.train; }

 private:
  Job job_;
  Batch batch_;
  std::unique_ptr<Engine> engine_;
  std::int64_t count_ = 0;
};

}  // namespace piper::bench

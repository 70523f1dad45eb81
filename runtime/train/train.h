// The loop over steps: data in, metrics out. What a step does is the plan's business
// (runtime/exec).
#pragma once

#include <functional>
#include <memory>

#include "core/base/diagnostic.h"
#include "core/runtime_interface.h"
#include "runtime/data/loader.h"
#include "runtime/exec/engine.h"

namespace piper {

using EngineFactory = std::function<Expected<std::unique_ptr<Engine>>(const Job&)>;

// Trains `job` to its last step, reports each step, evaluates the held-out rows and saves the
// weights, as the job says. Log lines go to standard output. SIGINT or SIGTERM ends it after the
// step or the batch of an evaluation that runs, a second one at once. What is saved then and after
// an error: ending.h. Errors: run.non_finite, data.*, and those of the engine.
Expected<TrainSummary> train(const Job& job, const TrainOptions& options,
                             const EngineFactory& create = Engine::create);

// Loss of the held-out rows: sum of token losses / counted labels, over all batches.
struct HeldOut {
  double loss = 0;
  std::int64_t tokens = 0;  // 0: there is nothing to evaluate
  bool whole = true;        // false: ended before its last batch
};
// Asked before each batch, with what there is so far.
using GoOn = std::function<bool(std::int64_t batch, std::int64_t batches, const HeldOut& sofar)>;
// `most_batches`: 0 = all.
Expected<HeldOut> evaluate(const Job& job, Loader& loader, Engine& engine,
                           std::int64_t most_batches, const GoOn& go_on = {});

}  // namespace piper

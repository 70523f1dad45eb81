// From the command line to a proven plan: the steps that commands share.
#pragma once

#include "core/base/diagnostic.h"
#include "core/cli/commands.h"
#include "core/pipeline.h"
#include "core/plugin/host.h"
#include "core/runtime_interface.h"

namespace piper {

// The job and the folders of its plugins, all checked that needs no model.
struct CheckedJob {
  Config config;
  SearchPath plugins;
  Proposal said;  // by its [[directive]] tables
};
Expected<CheckedJob> check_job(const CommandLine& line);

// The job's graph: of [model] graph, of the cache, or captured and then put there.
Expected<ModelGraph> model_graph(const Config& config);

// All of it: job, graph, what the strategies propose, and two plans that the verifier has passed.
// Warnings are printed.
Expected<Job> prepare(const CommandLine& line, const Trace& trace = {});

// The same for a job that is about to run: it has a model, the runtime is open and has checked
// data, weights and the files that it will write. Prints what that found, and the headline.
struct ReadyJob {
  Job job;
  Runtime* runtime = nullptr;
};
// `outputs`: what a training will write; null: nothing.
Expected<ReadyJob> prepare_run(const CommandLine& line, const TrainOptions* outputs = nullptr);

// What the runtime looks at before a run, or instead of it.
Expected<CheckOptions> check_options(const CommandLine& line, const Job& job,
                                     const TrainOptions* outputs);

// Prints remarks and lines.
void report(const CheckReport& checked);

// What a person wants to see before a run: model, mesh, strategies and the plan, a line each.
std::string headline(const Job& job);

// `pp 2 x dp 2`; `interleaved1f1b, zero 'inner'`, or `none`.
std::string mesh_text(const Config& config);
std::string strategies_text(const Config& config);

}  // namespace piper

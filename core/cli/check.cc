#include <iostream>

#include "core/cli/commands.h"
#include "core/cli/open_runtime.h"
#include "core/cli/prepare.h"
#include "core/show/summary.h"

namespace piper {
namespace {

// What the runtime says of a job that has a model: data files and weights must be sound, outputs
// can be written, and what it cannot run is warned of.
Status check_runtime(const CommandLine& line, const Job& job) {
  PIPER_ASSIGN(Runtime * runtime, open_runtime());
  if (Status runs = runtime->check_plans(job); !runs) {
    for (Diagnostic& diagnostic : runs.error()) {
      diagnostic.severity = Severity::warning;
    }
    report(runs.error());
  }
  const TrainOptions outputs;
  PIPER_ASSIGN(const CheckOptions options, check_options(line, job, &outputs));
  PIPER_ASSIGN(const CheckReport checked, runtime->check(job, options));
  report(checked);
  return {};
}

Exit check(const CommandLine& line) {
  const auto job = prepare(line);
  if (!job) {
    return report(job.error(), Exit::refused);
  }
  const bool can_run = job->config.model.graph.empty();
  if (can_run) {
    if (const Status checked = check_runtime(line, *job); !checked) {
      return report(checked.error(), Exit::refused);
    }
  }
  std::cout << headline(*job) << '\n'
            << summary(job->plans.train, job->model) << '\n'
            << (can_run ? "ok\n" : "ok (a job with model.graph can be planned, not trained)\n");
  return Exit::done;
}

}  // namespace

void add_check(CLI::App& program, CommandLine& line) {
  CLI::App& command =
      add_job_command(program, line, "check", "Say whether a job is sound, without running it.");
  command.callback([&line] { line.run = [&line] { return check(line); }; });
}

}  // namespace piper

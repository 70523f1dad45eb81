#include <cstdio>
#include <iostream>
#include <memory>
#include <sstream>

#include "core/base/output_file.h"
#include "core/cli/commands.h"
#include "core/cli/job_files.h"
#include "core/cli/plan_file.h"
#include "core/cli/prepare.h"
#include "core/config/schema.h"
#include "core/simulate/analysis.h"
#include "core/simulate/emulated.h"
#include "core/simulate/schedule_grid.h"
#include "core/simulate/trace.h"

namespace piper {
namespace {

struct SimulateCommand {
  std::string costs, pair = "apart", trace, svg, graph;
  bool contention = false, json = false;
};

struct Predicted {
  Simulation run;
  TimeUnit unit;
};

constexpr double kNanosecondsOfMs = 1e6;

// Under `--costs unit` a stage's pass is 1 and all else nothing; else under the job's cost model,
// or the one that is named instead.
Expected<Predicted> predict(Job& job, const SimulateCommand& command) {
  const Plan& plan = job.plans.train;
  Predicted out;
  if (!command.costs.empty()) {
    job.config.cost.model = command.costs;
  }
  SimulateOptions options;
  options.atomic_pairs = command.pair == "atomic";
  options.contention = command.contention;
  if (job.config.cost.model == "unit") {
    out.unit = {static_cast<double>(kUnitTicks), "units"};
    PIPER_ASSIGN(out.run, simulate(plan, unit_durations(plan, job.model), options));
    return out;
  }
  if (job.config.cost.model == "measured" && job.config.cost.file.empty()) {
    return fail(
        error("config.missing_key",
              "--costs measured: expected a file of costs, as in --cost.file=FILE, got none",
              job.config.where("cost")));
  }
  out.unit = {kNanosecondsOfMs, "ms"};
  if (job.config.cost.model == "emulated") {
    if (!job.config.emulate.computes() && !job.config.emulate.delays()) {
      return fail(error("config.missing_key", "--costs emulated: expected [emulate], got none",
                        job.config.where("emulate")));
    }
    PIPER_ASSIGN(out.run, simulate(plan, emulated_durations(plan, job.config.emulate), options));
    return out;
  }
  PIPER_ASSIGN(const CostModel model, load_cost_model(job.config));
  PIPER_ASSIGN(const Costs costs, make_costs(model, scope_of(plan), job.model));
  PIPER_ASSIGN(out.run, simulate(plan, durations_of(plan, costs), options));
  return out;
}

// "zbv (zerobubble)": what the strategies are asked for.
std::string schedules_text(const Config& config) {
  for (const StrategyConfig& strategy : config.strategies) {
    for (const auto& [name, option] : strategy.options) {
      const auto* const schedule = std::get_if<std::string>(&option.value);
      if (name == "schedule" && schedule != nullptr) {
        const std::string strategies = strategies_text(config);
        return *schedule + (strategies == *schedule ? "" : " (" + strategies + ')');
      }
    }
  }
  return strategies_text(config);
}

std::string facts(const Plan& plan, const ModelGraph& model, const Analysis& analysis,
                  const TimeUnit& unit) {
  char text[96];
  std::snprintf(text, sizeof text, "step %.6g %s, bubble %.1f %%, plan ",
                static_cast<double>(analysis.makespan) / unit.ticks, unit.name.c_str(),
                100 * analysis.bubble);
  return text + hash(plan, model);
}

// `heading` is printed before the text, `title` heads a picture.
Status show(const Job& job, const Predicted& predicted, const SimulateCommand& command,
            const std::string& heading, const std::string& title) {
  const Plan& plan = job.plans.train;
  const Analysis analysis = analyse(plan, job.model, predicted.run);
  if (!command.trace.empty()) {
    // A unit is drawn as a millisecond.
    const double microseconds = 1000 / predicted.unit.ticks;
    std::ostringstream text;
    write_trace(text, plan, job.model, predicted.run.times, microseconds,
                predicted.unit.name == "units");
    PIPER_TRY(write_file(command.trace, text.view(), {.code = "cli.output"}));
  }
  if (!command.svg.empty()) {
    PIPER_ASSIGN(const Grid grid,
                 schedule_grid(plan, job.model, predicted.run, analysis, predicted.unit,
                               title + ", " + std::to_string(plan.microbatches) + " micro-batches",
                               {facts(plan, job.model, analysis, predicted.unit)}));
    PIPER_TRY(write_file(command.svg, svg(grid), {.code = "cli.output"}));
  }
  if (command.json) {
    write_json(std::cout, plan, job.model, predicted.run, analysis, predicted.unit);
  } else {
    std::cout << heading << '\n'
              << describe(plan, job.model, predicted.run, analysis, predicted.unit);
  }
  return {};
}

// A plan file is a job that says nothing but its plan.
Expected<Job> read_job(const CommandLine& line, const SimulateCommand& command) {
  if (command.graph.empty()) {
    return prepare(line);
  }
  if (!line.overrides.empty()) {
    return fail(error("cli.usage", "expected nothing to override with a plan file, got --" +
                                       line.overrides.front()));
  }
  if (!command.costs.empty() && command.costs != "unit") {
    return fail(error("cli.usage",
                      "--costs: expected unit with a plan file, which names no costs, "
                      "got '" +
                          command.costs + "'"));
  }
  PIPER_ASSIGN(PlanFile read, read_plan_file(line.job, command.graph));
  Job job;
  job.config.cost.model = "unit";
  job.model = std::move(read.model);
  job.plans.train = std::move(read.plan);
  return job;
}

Exit run(const CommandLine& line, const SimulateCommand& command) {
  auto job = read_job(line, command);
  if (!job) {
    return report(job.error(), Exit::refused);
  }
  if (const Status outputs =
          check_outputs_of(line, job->config, {{"--trace", command.trace}, {"--svg", command.svg}});
      !outputs) {
    return report(outputs.error(), Exit::refused);
  }
  const bool is_file = !command.graph.empty();
  const std::string heading = is_file ? "plan        " + hash(job->plans.train, job->model) +
                                            " of " + line.job + ": verified\n"
                                      : headline(*job);
  const std::string title =
      is_file ? line.job : schedules_text(job->config) + " on " + mesh_text(job->config);
  const auto predicted = predict(*job, command);
  if (!predicted) {
    return report(predicted.error(), Exit::refused);
  }
  if (const Status shown = show(*job, *predicted, command, heading, title); !shown) {
    return report(shown.error(), Exit::failed);
  }
  return Exit::done;
}

}  // namespace

void add_simulate(CLI::App& program, CommandLine& line) {
  CLI::App& command = add_job_command(
      program, line, "simulate", "Run a job's plan in time under a cost model, without a model.");
  const auto options = std::make_shared<SimulateCommand>();
  command
      .add_option(
          "--costs", options->costs,
          "unit: a pass of a stage takes 1, all else nothing; analytical; measured; emulated: as "
          "[emulate] says; without it as [cost] says")
      ->type_name("MODEL")
      ->check(one_of({"unit", "analytical", "measured", "emulated"}));
  command
      .add_option("--pair", options->pair,
                  "atomic: an overlap group is one block; apart: each part of it on its own")
      ->type_name("HOW")
      ->default_str("apart")
      ->check(one_of({"apart", "atomic"}));
  command.add_flag("--contention", options->contention,
                   "transfers of one place at the same time share its link");
  command.add_flag("--json", options->json, "print JSON");
  command.add_option("--trace", options->trace, "write a trace for Perfetto")->type_name("FILE");
  add_graph_option(command, options->graph)
      ->description("the model graph: JOB.toml is then a plan file, as `piper plan` prints it");
  command.add_option("--svg", options->svg, "write the schedule as a picture")->type_name("FILE");
  command.callback([&line, options] {
    line.costs = options->costs;
    line.run = [&line, options] { return run(line, *options); };
  });
}

}  // namespace piper

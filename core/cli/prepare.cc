#include "core/cli/prepare.h"

#include <fstream>
#include <iostream>
#include <sstream>

#include "core/cli/fit.h"
#include "core/cli/graph_cache.h"
#include "core/cli/job_files.h"
#include "core/cli/open_runtime.h"
#include "core/cli/plan_file.h"
#include "core/config/schema.h"
#include "core/directives/toml/read.h"
#include "core/lower/expand.h"
#include "core/settings/check_parameters.h"
#include "core/settings/plan_remarks.h"

namespace piper {
namespace {

// 1234567 -> "1.23 M"
std::string scaled(double value) {
  constexpr const char* kUnits[] = {"", " k", " M", " G", " T"};
  std::size_t unit = 0;
  while (value >= 1000 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  std::ostringstream text;
  text.precision(unit == 0 ? 4 : 3);
  text << value << kUnits[unit];
  return text.str();
}

// "1 rank", "2 ranks"
std::string counted(std::int64_t count, const std::string& thing) {
  const bool takes_es = thing.ends_with("ch");
  return std::to_string(count) + ' ' + thing + (count == 1 ? "" : takes_es ? "es" : "s");
}

}  // namespace

Expected<CheckedJob> check_job(const CommandLine& line) {
  CheckedJob job;
  PIPER_ASSIGN(job.config, load_config(line.job, line.overrides));
  report(job.config.remarks);
  const CostConfig& cost = job.config.cost;
  if (!cost.file.empty() && cost.model != "measured" && line.costs != "measured") {
    return fail(error("config.conflict",
                      "cost.file: expected cost.model = \"measured\", got " + toml_text(cost.model),
                      job.config.where("cost.file")));
  }
  const bool needs_machine = line.costs == "analytical" || line.costs == "measured";
  if (!cost.machine.empty() && cost.model == "unit" && !needs_machine) {
    report({warning("config.no_effect",
                    "cost.machine has no effect: cost.model = \"unit\" knows no machine",
                    job.config.where("cost.machine"))});
  }
  PIPER_ASSIGN(job.said, read_directives(job.config));
  for (const Directive& directive : job.said.directives) {
    if (const auto* split = std::get_if<SplitDirective>(&directive.what)) {
      if (is_given(job.config, "training.microbatches") &&
          job.config.training.microbatches != split->n) {
        report(
            {warning("config.no_effect",
                     "training.microbatches has no effect: a [[directive]] splits the rows into " +
                         std::to_string(split->n),
                     job.config.where("training.microbatches"))
                 .note("this one", directive.from.where)});
      }
      job.config.training.microbatches = split->n;  // strategies see what the job says
    }
  }
  PIPER_ASSIGN(job.plugins, plugin_search_path(line.plugin_directories, line.allow_unsafe_plugins));
  Diagnostics warnings;
  const Status checked = check_strategies(job.config, job.plugins, &warnings);
  report(warnings);
  PIPER_TRY(checked);
  return job;
}

Expected<ModelGraph> model_graph(const Config& config) {
  if (!config.model.graph.empty()) {
    return read_graph(config.model.graph, "model.graph", config.where("model.graph"));
  }
  const GraphCache cache(config, runtime_file());
  if (auto cached = cache.load()) {
    return *std::move(cached);
  }
  PIPER_ASSIGN(Runtime * runtime, open_runtime());
  PIPER_ASSIGN(ModelGraph model, runtime->capture(config));
  cache.store(model);
  return model;
}

Expected<Job> prepare(const CommandLine& line, const Trace& trace) {
  PIPER_ASSIGN(CheckedJob checked, check_job(line));
  Job job;
  PIPER_ASSIGN(job.model, model_graph(checked.config));
  PIPER_ASSIGN(const Diagnostics remarks, check_parameters(checked.config, job.model));
  report(remarks);
  Diagnostics warnings;
  auto proposals = propose(checked.config, job.model, checked.plugins, &warnings);
  report(warnings);
  if (!proposals) {
    return fail(proposals.error());
  }
  proposals->push_back(std::move(checked.said));
  Diagnostics left_out;
  const Trace see = [&](const Phase& phase) {
    if (const auto* expanded = std::get_if<const Expanded*>(&phase.value)) {
      const Diagnostics& found = (*expanded)->warnings;
      left_out.insert(left_out.end(), found.begin(), found.end());
    }
    if (trace) {
      trace(phase);
    }
  };
  auto plans = plan(checked.config, job.model, *proposals, see);
  report(left_out);
  if (!plans) {
    checked.said = std::move(proposals->back());
    suggest_what_fits(plans.error(), checked, job.model);
    return fail(std::move(plans.error()));
  }
  job.plans = *std::move(plans);
  report(plan_remarks(checked.config, job.plans));
  job.config = std::move(checked.config);
  return job;
}

std::string mesh_text(const Config& config) {
  std::string mesh;
  for (const auto& [name, size] : config.mesh.axes) {
    if (name != "ep") {
      mesh += (mesh.empty() ? "" : " x ") + name + ' ' + std::to_string(size);
    }
    if (const std::uint32_t ep = config.mesh.size("ep"); name == "dp" && ep > 1) {
      mesh += " (ep " + std::to_string(ep) + ')';
    }
  }
  return mesh;
}

std::string strategies_text(const Config& config) {
  std::string text;
  for (const StrategyConfig& strategy : config.strategies) {
    text += (text.empty() ? "" : ", ") + strategy.plugin;
    if (strategy.name != strategy.plugin) {
      text += " '" + strategy.name + "'";
    }
  }
  if (!config.directives.empty()) {
    text += (text.empty() ? "" : ", ") +
            counted(static_cast<std::int64_t>(config.directives.size()), "directive") +
            " of the job";
  }
  return text.empty() ? "none" : text;
}

std::string headline(const Job& job) {
  std::int64_t parameters = 0;
  for (const Parameter& parameter : job.model.parameters) {
    parameters += parameter.elements();
  }
  std::int64_t tasks = 0;
  for (const Program& program : job.plans.train.programs) {
    tasks += static_cast<std::int64_t>(program.tasks.size());
  }
  const TrainingConfig& training = job.config.training;
  const Plan& plan = job.plans.train;
  std::ostringstream text;
  text << "model       " << job.model.name << ", " << scaled(static_cast<double>(parameters))
       << " parameters, " << to_string(training.dtype) << '\n'
       << "mesh        " << mesh_text(job.config) << " = " << counted(plan.world, "rank") << " on "
       << job.config.device << '\n'
       << "step        " << counted(training.global_batch_size, "row") << " of "
       << counted(training.seq_len, "token") << ", " << counted(plan.microbatches, "micro-batch")
       << '\n'
       << "strategies  " << strategies_text(job.config) << '\n'
       << "plan        " << hash(plan, job.model) << ", "
       << counted(static_cast<std::int64_t>(plan.programs.size()), "program") << ", "
       << counted(tasks, "task") << ", "
       << counted(static_cast<std::int64_t>(plan.communicators.size()), "communicator")
       << ": verified\n";
  for (const std::string& remark : job.plans.remarks) {
    text << "balance     " << remark << '\n';
  }
  return text.str();
}

void report(const CheckReport& checked) {
  report(checked.remarks);
  for (const std::string& said : checked.lines) {
    say(said);
  }
}

Expected<CheckOptions> check_options(const CommandLine& line, const Job& job,
                                     const TrainOptions* outputs) {
  CheckOptions options;
  if (outputs != nullptr) {
    PIPER_ASSIGN(const SearchPath plugins,
                 plugin_search_path(line.plugin_directories, line.allow_unsafe_plugins));
    options.outputs = outputs_of(job, *outputs);
    options.inputs = inputs_of(job.config, plugins);
    options.progress = outputs->progress;
  }
  return options;
}

Expected<ReadyJob> prepare_run(const CommandLine& line, const TrainOptions* outputs) {
  ReadyJob ready;
  PIPER_ASSIGN(ready.job, prepare(line));
  if (const Config& config = ready.job.config; !config.model.graph.empty()) {
    return fail(error("model.graph_only",
                      "expected a model that can run, got model.graph, which can only be planned",
                      config.where("model.graph")));
  }
  PIPER_ASSIGN(ready.runtime, open_runtime());
  PIPER_TRY(ready.runtime->check_plans(ready.job));
  PIPER_ASSIGN(CheckOptions options, check_options(line, ready.job, outputs));
  options.whole_data = true;
  PIPER_ASSIGN(const CheckReport checked, ready.runtime->check(ready.job, options));
  report(checked);
  std::string head = headline(ready.job);
  head.pop_back();  // the last line break, which say() adds
  say(head);
  return ready;
}

}  // namespace piper

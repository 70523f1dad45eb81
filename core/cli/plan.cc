#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include "core/cli/commands.h"
#include "core/cli/prepare.h"
#include "core/show/plan_grid.h"

namespace piper {
namespace {

struct PlanOptions {
  std::int64_t rank = -1;
  std::string after, format = "text";
  bool evaluate = false;
};

// Of a printed plan, the part of one program.
std::string program_text(const std::string& text, std::uint32_t program) {
  const std::string head = "\nprogram ";
  const std::size_t begin = text.find(head + std::to_string(program) + ' ');
  if (begin == std::string::npos) {
    return text;
  }
  const std::size_t end = text.find(head, begin + 1);
  return text.substr(begin + 1, end == std::string::npos ? end : end - begin);
}

Exit usage(const std::string& message) {
  return report({error("cli.usage", message)}, Exit::refused);
}

// What heads a picture of a plan.
std::string title(const Config& config, const ModelGraph& model) {
  return std::filesystem::path(config.file).filename().string() + ": " + model.name + " on " +
         mesh_text(config);
}

std::string facts(const Job& job, const Plan& plan) {
  return (plan.kind == Plan::Kind::train ? "train, " : "evaluate, ") +
         std::to_string(plan.microbatches) +
         " micro-batches, strategies: " + strategies_text(job.config) + ", plan " +
         hash(plan, job.model);
}

Exit print_phase(const CommandLine& line, const PlanOptions& options) {
  std::vector<std::string> phases;
  std::vector<std::string> printed;  // of the plan for training, then of the one for evaluation
  const Trace trace = [&](const Phase& phase) {
    if (std::find(phases.begin(), phases.end(), phase.name) == phases.end()) {
      phases.emplace_back(phase.name);
    }
    if (phase.name == options.after) {
      printed.push_back(print(phase));
    }
  };
  const auto job = prepare(line, trace);
  if (!printed.empty()) {
    const std::string& text = options.evaluate ? printed.back() : printed.front();
    std::cout << text << (text.ends_with('\n') ? "" : "\n");
  } else if (job) {
    return usage("--after: unknown phase '" + options.after + "'" + suggest(options.after, phases));
  }
  return job ? Exit::done : report(job.error(), Exit::refused);
}

Exit print_plan(const CommandLine& line, const PlanOptions& options) {
  const auto job = prepare(line);
  if (!job) {
    return report(job.error(), Exit::refused);
  }
  const Plan& plan = options.evaluate ? job->plans.evaluate : job->plans.train;
  if (options.rank >= plan.world) {
    return usage("--rank: expected a rank below " + std::to_string(plan.world) + ", got " +
                 std::to_string(options.rank));
  }
  std::optional<std::uint32_t> program;
  if (options.rank >= 0) {
    program = plan.seat(static_cast<std::uint32_t>(options.rank)).program;
  }
  if (options.format == "svg") {
    const auto grid =
        plan_grid(plan, job->model, title(job->config, job->model), {facts(*job, plan)}, program);
    if (!grid) {
      return report(grid.error(), Exit::refused);
    }
    std::cout << svg(*grid);
    return Exit::done;
  }
  const std::string text = print(plan, job->model);
  std::cout << (program ? program_text(text, *program) : text);
  return Exit::done;
}

}  // namespace

void add_plan(CLI::App& program, CommandLine& line) {
  CLI::App& command =
      add_job_command(program, line, "plan", "Print a job's verified plan as text.");
  const auto options = std::make_shared<PlanOptions>();
  auto* rank = command.add_option("--rank", options->rank, "only what this rank runs")
                   ->type_name("N")
                   ->check(at_least(0));
  command
      .add_option("--after", options->after,
                  "print what the planner has after this phase, instead of the plan")
      ->type_name("PHASE")
      ->excludes(rank);
  command.add_option("--format", options->format, "text, or svg")->type_name("FORMAT");
  command.add_flag("--evaluate", options->evaluate, "the plan of a held-out batch, not of a step");
  command.callback([&line, options] {
    line.run = [&line, options] {
      return options->after.empty() ? print_plan(line, *options) : print_phase(line, *options);
    };
  });
}

}  // namespace piper

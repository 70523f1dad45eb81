#include <algorithm>
#include <iostream>
#include <memory>

#include "core/cli/commands.h"
#include "core/cli/prepare.h"

namespace piper {
namespace {

struct PlanOptions {
  std::int64_t rank = -1;
  std::string after;
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

Exit print_phase(const CommandLine& line, const PlanOptions& options) {
  std::vector<std::string> phases;
  std::vector<std::string> printed;  // of the plan for training, then of the one for evaluation
  const Trace trace = [&](std::string_view phase, const std::function<std::string()>& text) {
    if (std::find(phases.begin(), phases.end(), phase) == phases.end()) {
      phases.emplace_back(phase);
    }
    if (phase == options.after) {
      printed.push_back(text());
    }
  };
  const auto job = prepare(line, trace);
  if (!printed.empty()) {
    const std::string& text = options.evaluate ? printed.back() : printed.front();
    std::cout << text << (text.ends_with('\n') ? "" : "\n");
  } else if (job) {
    return report({error("cli.usage", "--after: unknown phase '" + options.after + "'" +
                                          suggest(options.after, phases))},
                  Exit::refused);
  }
  return job ? Exit::done : report(job.error(), Exit::refused);
}

Exit print_plan(const CommandLine& line, const PlanOptions& options) {
  const auto job = prepare(line);
  if (!job) {
    return report(job.error(), Exit::refused);
  }
  const Plan& plan = options.evaluate ? job->plans.evaluate : job->plans.train;
  const std::string text = print(plan, job->model);
  if (options.rank < 0) {
    std::cout << text;
    return Exit::done;
  }
  if (options.rank >= plan.world) {
    return report(
        {error("cli.usage", "--rank: expected a rank below " + std::to_string(plan.world) +
                                ", got " + std::to_string(options.rank))},
        Exit::refused);
  }
  std::cout << program_text(text, plan.seat(static_cast<std::uint32_t>(options.rank)).program);
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
  command.add_flag("--evaluate", options->evaluate, "the plan of a held-out batch, not of a step");
  command.callback([&line, options] {
    line.run = [&line, options] {
      return options->after.empty() ? print_plan(line, *options) : print_phase(line, *options);
    };
  });
}

}  // namespace piper

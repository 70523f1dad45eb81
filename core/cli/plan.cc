#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include "core/cli/commands.h"
#include "core/cli/fit.h"
#include "core/cli/plan_file.h"
#include "core/cli/prepare.h"
#include "core/settings/check_parameters.h"
#include "core/show/csv.h"
#include "core/show/diagram.h"
#include "core/show/diff.h"
#include "core/show/explain.h"
#include "core/show/json.h"
#include "core/show/memory_text.h"
#include "core/simulate/plan_grid.h"

namespace piper {
namespace {

struct PlanOptions {
  std::int64_t rank = -1;
  std::string after, format, explain, diff, check, graph;
  bool evaluate = false, max_batch = false;

  Plan::Kind kind() const { return evaluate ? Plan::Kind::evaluate : Plan::Kind::train; }
  const Plan& of(const Job& job) const { return evaluate ? job.plans.evaluate : job.plans.train; }
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

Diagnostic usage(const std::string& message) {
  return error("cli.usage", message);
}

// What heads a picture.
std::string title(const Config& config, const ModelGraph& model) {
  return std::filesystem::path(config.file).filename().string() + ": " + model.name + " on " +
         mesh_text(config);
}

std::string facts(const Job& job, const Plan& plan) {
  return (plan.kind == Plan::Kind::train ? "train, " : "evaluate, ") +
         std::to_string(plan.microbatches) +
         (plan.microbatches == 1 ? " micro-batch" : " micro-batches") +
         ", strategies: " + strategies_text(job.config) + ", plan " + hash(plan, job.model);
}

// The program that --rank asks for; nothing where it does not.
Expected<std::optional<std::uint32_t>> program_of(const PlanOptions& options, const Plan& plan) {
  if (options.rank >= plan.world) {
    return fail(usage("--rank: expected a rank below " + std::to_string(plan.world) + ", got " +
                      std::to_string(options.rank)));
  }
  return options.rank < 0
             ? std::nullopt
             : std::optional(plan.seat(static_cast<std::uint32_t>(options.rank)).program);
}

Expected<std::string> phase_text(const Phase& phase, const PlanOptions& options) {
  if (options.format == "text") {
    std::string text = print(phase);
    return text + (text.ends_with('\n') ? "" : "\n");
  }
  PIPER_ASSIGN(const Diagram picture, diagram(phase, options.rank));
  return dot(picture);
}

Status print_phase(const CommandLine& line, const PlanOptions& options) {
  std::vector<std::string> phases;
  std::optional<Expected<std::string>> text;
  const Trace trace = [&](const Phase& phase) {
    if (std::find(phases.begin(), phases.end(), phase.name) == phases.end()) {
      phases.emplace_back(phase.name);
    }
    // Of the plan for training, then of the one for evaluation.
    if (phase.name == options.after && (!text || options.evaluate)) {
      text = phase_text(phase, options);
    }
  };
  const auto job = prepare(line, trace);
  if (text) {
    PIPER_TRY(*text);
    std::cout << **text;
  } else if (job) {
    return fail(
        usage("--after: unknown phase '" + options.after + "'" + suggest(options.after, phases)));
  }
  PIPER_TRY(job);
  return {};
}

Status print_plan(const CommandLine& line, const PlanOptions& options) {
  OrderNotation notation;
  const Trace see = [&](const Phase& phase) { notation.see(phase); };
  PIPER_ASSIGN(const Job job, prepare(line, options.format == "csv" ? see : Trace()));
  const Plan& plan = options.of(job);
  PIPER_ASSIGN(const std::optional<std::uint32_t> program, program_of(options, plan));
  if (options.format == "json") {
    write_json(std::cout, plan, job.model, program);
  } else if (options.format == "csv") {
    PIPER_ASSIGN(const std::string text, csv(plan, job.model, notation, program));
    std::cout << text;
  } else if (options.format == "dot") {
    PIPER_ASSIGN(const Diagram picture, diagram({"schedule", job.model, &plan}, options.rank));
    std::cout << dot(picture);
  } else if (options.format == "svg") {
    PIPER_ASSIGN(const Grid grid, plan_grid(plan, job.model, title(job.config, job.model),
                                            {facts(job, plan)}, program));
    std::cout << svg(grid);
  } else {
    const std::string text = print(plan, job.model);
    std::cout << (program ? program_text(text, *program) : text)
              << memory_text(job.plans, job.model, program, "# ");
  }
  return {};
}

Status print_largest_microbatch(const CommandLine& line) {
  PIPER_ASSIGN(const CheckedJob job, check_job(line));
  PIPER_ASSIGN(const ModelGraph model, model_graph(job.config));
  PIPER_ASSIGN(const Diagnostics remarks, check_parameters(job.config, model));
  report(remarks);
  PIPER_ASSIGN(const std::string text, largest_microbatch(job, model));
  std::cout << text;
  return {};
}

Status print_explanation(const CommandLine& line, const PlanOptions& options) {
  PlanHistory history(options.kind());
  PIPER_ASSIGN(const Job job, prepare(line, [&](const Phase& phase) { history.see(phase); }));
  PIPER_ASSIGN(const std::string text, explain(options.of(job), history, options.explain));
  std::cout << text;
  return {};
}

// True where the plans are the same. Overrides are meant for the first job.
Expected<bool> print_difference(const CommandLine& line, const PlanOptions& options) {
  CommandLine second = line;
  second.job = options.diff;
  second.overrides.clear();
  PIPER_ASSIGN(const Job one, prepare(line));
  PIPER_ASSIGN(const Job other, prepare(second));
  PIPER_ASSIGN(const std::optional<std::uint32_t> program, program_of(options, options.of(one)));
  const PlanDifference found = diff(
      {line.job + (line.overrides.empty() ? "" : " with overrides"), options.of(one), one.model},
      {second.job, options.of(other), other.model}, program.value_or(kEveryProgram));
  std::cout << found.text;
  return found.same;
}

Status check_plan_file(const PlanOptions& options) {
  PIPER_ASSIGN(const PlanFile read, read_plan_file(options.check, options.graph));
  std::size_t tasks = 0;
  for (const Program& program : read.plan.programs) {
    tasks += program.tasks.size();
  }
  std::cout << "plan " << hash(read.plan, read.model) << ", " << tasks << " tasks: verified\n";
  return {};
}

// Options that say nothing together.
Status check(const CommandLine& line, const PlanOptions& options) {
  if (options.check.empty() != options.graph.empty()) {
    return fail(usage("--check and --graph: expected both, the plan and the graph that it is of"));
  }
  if (!options.check.empty() && !line.job.empty()) {
    return fail(
        usage("--check takes a plan instead of a job: expected no job, got '" + line.job + "'"));
  }
  const std::vector<std::string> formats{"text", "json", "csv", "dot", "svg"};
  if (std::find(formats.begin(), formats.end(), options.format) == formats.end()) {
    return fail(usage("--format: expected text, json, csv, dot or svg, got '" + options.format +
                      "'" + suggest(options.format, formats)));
  }
  if (!options.after.empty() && options.format == "csv") {
    return fail(usage("--format csv prints the plan's compute order: expected no --after"));
  }
  if (!options.after.empty() && options.format == "json") {
    return fail(
        usage("--after prints as text or dot: the JSON of a plan is what --format json without "
              "--after writes"));
  }
  if (!options.after.empty() && options.format == "svg") {
    return fail(usage("--after prints as text or dot: pipe --format dot to `dot -Tsvg`"));
  }
  if (!options.after.empty() && options.format == "text" && options.rank >= 0) {
    return fail(usage("--rank with --after restricts a picture: expected --format dot"));
  }
  return {};
}

Exit run(const CommandLine& line, const PlanOptions& options) {
  Status status = check(line, options);
  if (status && !options.diff.empty()) {
    const Expected<bool> same = print_difference(line, options);
    return same ? (*same ? Exit::done : Exit::failed) : report(same.error(), Exit::refused);
  }
  if (status) {
    status = !options.check.empty()     ? check_plan_file(options)
             : options.max_batch        ? print_largest_microbatch(line)
             : !options.explain.empty() ? print_explanation(line, options)
             : !options.after.empty()   ? print_phase(line, options)
                                        : print_plan(line, options);
  }
  return status ? Exit::done : report(status.error(), Exit::refused);
}

}  // namespace

void add_plan(CLI::App& program, CommandLine& line) {
  CLI::App& command = add_job_command(program, line, "plan",
                                      "Print a job's verified plan: as text, JSON or a picture.");
  const auto options = std::make_shared<PlanOptions>();
  auto* rank = command.add_option("--rank", options->rank, "only what this rank runs")
                   ->type_name("N")
                   ->check(at_least(0));
  auto* after = command
                    .add_option("--after", options->after,
                                "print what the planner has after this phase, instead of the plan")
                    ->type_name("PHASE");
  auto* format = command
                     .add_option("--format", options->format,
                                 "text; json, for programs; csv, the compute order of each place; "
                                 "svg, the plan on rows over time; dot, the graph for "
                                 "Graphviz")
                     ->type_name("FORMAT")
                     ->default_str("text");
  options->format = "text";
  auto* explain =
      command
          .add_option("--explain", options->explain,
                      "say what a node is, who made it and why it is where it is; NODE is a name "
                      "such as 1F3@0, or a number")
          ->type_name("NODE")
          ->excludes(rank)
          ->excludes(after)
          ->excludes(format);
  auto* diff =
      command
          .add_option("--diff", options->diff,
                      "say what differs in the plan of another job; the exit status is then 1")
          ->type_name("OTHER.toml")
          ->excludes(after)
          ->excludes(format)
          ->excludes(explain);
  command
      .add_flag("--max-batch", options->max_batch,
                "the largest micro-batch that fits [memory] capacity, instead of the plan")
      ->excludes(rank)
      ->excludes(after)
      ->excludes(format)
      ->excludes(explain)
      ->excludes(diff);
  command
      .add_option("--check", options->check,
                  "instead of a job: read this plan, as the command prints it, and prove it")
      ->type_name("FILE.plan")
      ->excludes(rank)
      ->excludes(after)
      ->excludes(format)
      ->excludes(explain)
      ->excludes(diff);
  add_graph_option(command, options->graph);
  command.get_option("job")->required(false);
  command.add_flag("--evaluate", options->evaluate, "the plan of a held-out batch, not of a step");
  command.callback([&line, options] {
    if (line.job.empty() && options->check.empty()) {
      throw CLI::RequiredError("job");
    }
    line.run = [&line, options] { return run(line, *options); };
  });
}

}  // namespace piper

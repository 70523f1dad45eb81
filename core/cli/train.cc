#include <iomanip>
#include <iostream>
#include <memory>
#include <sstream>

#include "core/cli/commands.h"
#include "core/cli/output_locks.h"
#include "core/cli/prepare.h"

namespace piper {
namespace {

// The last line. A loss that the run has not is left out.
std::string last_line(const TrainSummary& summary) {
  std::ostringstream text;
  text.setf(std::ios::fixed);
  text.precision(4);
  text << (summary.interrupted ? "interrupted" : "done") << " steps=" << summary.steps;
  if (summary.loss) {
    text << " loss=" << *summary.loss;
  }
  if (summary.held_out_loss) {
    text << " held_out_loss=" << *summary.held_out_loss;
  }
  text.precision(1);
  text << " tokens_per_second=" << summary.tokens_per_second << " seconds=" << std::setprecision(2)
       << summary.seconds;
  if (summary.interrupted) {
    text << " weights=" << (summary.weights.empty() ? "not_saved" : summary.weights);
  }
  text << '\n';
  return text.str();
}

Exit train(const CommandLine& line, const TrainOptions& options) {
  const auto ready = prepare_run(line, &options);
  if (!ready) {
    return report(ready.error(), Exit::refused);
  }
  const auto locks = OutputLocks::take(ready->job.config, options);
  if (!locks) {
    return report(locks.error(), Exit::refused);
  }
  const auto summary = ready->runtime->train(ready->job, options);
  if (!summary) {
    // The metrics are locked as they are opened, before the first step.
    const bool in_use = summary.error().front().code == "file.in_use";
    return report(summary.error(), in_use ? Exit::refused : Exit::failed);
  }
  report(summary->problems);
  std::cout << last_line(*summary) << std::flush;
  return summary->interrupted        ? Exit::interrupted
         : summary->problems.empty() ? Exit::done
                                     : Exit::failed;
}

}  // namespace

void add_train(CLI::App& program, CommandLine& line) {
  CLI::App& command = add_job_command(program, line, "train", "Plan, verify and train a job.");
  const auto options = std::make_shared<TrainOptions>();
  command
      .add_option("--save-gradients", options->save_gradients,
                  "write the first step's gradients, reduced and not clipped")
      ->type_name("FILE.safetensors");
  command
      .add_option("--costs", options->save_costs,
                  "write what the last step's computations took, for [cost] file")
      ->type_name("FILE.toml");
  command.add_flag_callback(
      "--no-progress", [options] { options->progress = false; }, "print no progress line");
  command.callback(
      [&line, options] { line.run = [&line, options] { return train(line, *options); }; });
}

}  // namespace piper

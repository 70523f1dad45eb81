#include <iostream>
#include <memory>

#include "core/cli/commands.h"
#include "core/cli/prepare.h"

namespace piper {
namespace {

Exit verify_job(const CommandLine& line, const VerifyOptions& options) {
  const auto ready = prepare_run(line);
  if (!ready) {
    return report(ready.error(), Exit::refused);
  }
  if (const Config& config = ready->job.config; config.emulate.computes()) {
    return report({error("verify.emulated", "expected computations to compare, got [emulate]",
                         config.where("emulate"))},
                  Exit::refused);
  }
  const auto parity = ready->runtime->verify(ready->job, options);
  if (!parity) {
    return report(parity.error(), Exit::failed);
  }
  std::cout << parity->text << (parity->text.ends_with('\n') ? "" : "\n");
  return parity->passed ? Exit::done : Exit::failed;
}

}  // namespace

void add_verify(CLI::App& program, CommandLine& line) {
  CLI::App& command = add_job_command(program, line, "verify",
                                      "Run a job and the single-device program, and compare them.");
  const auto options = std::make_shared<VerifyOptions>();
  command.add_option("--steps", options->steps, "steps to compare")
      ->type_name("N")
      ->capture_default_str()
      ->check(at_least(1));
  command
      .add_option("--break-scaling", options->break_scaling,
                  "multiply the run's gradients, so that parity is not met")
      ->group("");  // for tests: not in the help
  command.callback(
      [&line, options] { line.run = [&line, options] { return verify_job(line, *options); }; });
}

}  // namespace piper

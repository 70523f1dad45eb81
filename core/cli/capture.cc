#include <iostream>
#include <memory>

#include "core/base/output_file.h"
#include "core/cli/commands.h"
#include "core/cli/job_files.h"
#include "core/cli/prepare.h"

namespace piper {
namespace {

Exit capture(const CommandLine& line, const std::string& file) {
  const auto config = load_config(line.job, line.overrides);
  if (!config) {
    return report(config.error(), Exit::refused);
  }
  if (const Status output = check_outputs_of(line, *config, {{"--output", file}}); !output) {
    return report(output.error(), Exit::refused);
  }
  const auto model = model_graph(*config);
  if (!model) {
    return report(model.error(), Exit::refused);
  }
  if (file.empty()) {
    std::cout << print(*model);
    return Exit::done;
  }
  const Status written = write_file(file, print(*model), {.code = "cli.output"});
  return written ? Exit::done : report(written.error(), Exit::failed);
}

}  // namespace

void add_capture(CLI::App& program, CommandLine& line) {
  CLI::App& command =
      add_job_command(program, line, "capture",
                      "Print a job's model as a graph that can be planned without LibTorch.");
  const auto file = std::make_shared<std::string>();
  command.add_option("-o,--output", *file, "a file for the graph; else standard output")
      ->type_name("FILE.graph");
  command.callback([&line, file] { line.run = [&line, file] { return capture(line, *file); }; });
}

}  // namespace piper

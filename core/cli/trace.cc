#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>

#include "core/cli/commands.h"
#include "core/simulate/compare_traces.h"

namespace piper {
namespace {

struct CompareCommand {
  std::string predicted, measured;
};

Expected<std::string> read_trace(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (!stream) {
    return fail(error("trace.file", "expected a trace, got '" + file + "', which cannot be read"));
  }
  return text;
}

Expected<std::string> compare(const CompareCommand& command) {
  PIPER_ASSIGN(const std::string predicted, read_trace(command.predicted));
  PIPER_ASSIGN(const std::string measured, read_trace(command.measured));
  return compare_traces({predicted, command.predicted}, {measured, command.measured});
}

Exit run(const CompareCommand& command) {
  const auto table = compare(command);
  if (!table) {
    return report(table.error(), Exit::refused);
  }
  std::cout << *table;
  return Exit::done;
}

}  // namespace

void add_trace(CLI::App& program, CommandLine& line) {
  CLI::App& trace =
      *program.add_subcommand("trace", "Work with traces of predicted and real runs.");
  trace.require_subcommand(1);
  CLI::App& command = *trace.add_subcommand(
      "compare", "Put a predicted trace and a measured one of the same plan side by side.");
  const auto options = std::make_shared<CompareCommand>();
  command.add_option("predicted", options->predicted, "what `piper simulate --trace` wrote")
      ->type_name("PREDICTED.json")
      ->required();
  command.add_option("measured", options->measured, "what [profiling] trace wrote")
      ->type_name("MEASURED.json")
      ->required();
  command.callback([&line, options] { line.run = [options] { return run(*options); }; });
}

}  // namespace piper

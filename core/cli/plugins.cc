#include <iostream>
#include <memory>

#include "core/cli/commands.h"
#include "core/plugin/host.h"

namespace piper {
namespace {

Exit list_plugins(const CommandLine& line, bool json) {
  const auto path = plugin_search_path(line.plugin_directories, line.allow_unsafe_plugins);
  if (!path) {
    return report(path.error(), Exit::refused);
  }
  const auto plugins = find_plugins(*path);
  if (!plugins) {
    return report(plugins.error(), Exit::refused);
  }
  std::cout << (json ? describe_json(*plugins) : describe(*plugins));
  return Exit::done;
}

}  // namespace

void add_plugins(CLI::App& program, CommandLine& line) {
  CLI::App& command = *program.add_subcommand(
      "plugins", "List the plugins that are found, with their options; runs none of their code.");
  add_plugin_options(command, line);
  const auto json = std::make_shared<bool>(false);
  command.add_flag("--json", *json, "as JSON");
  command.callback(
      [&line, json] { line.run = [&line, json] { return list_plugins(line, *json); }; });
}

}  // namespace piper

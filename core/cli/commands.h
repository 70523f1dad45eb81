// The commands of the program. Each adds its subcommand, and sets what runs when the user chose it.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/cli/exit.h"

namespace piper {

// What the command line says beside a command's own options.
struct CommandLine {
  std::string job;
  std::vector<std::string> overrides;           // `section.key=value`
  std::vector<std::string> plugin_directories;  // --plugin-dir
  bool allow_unsafe_plugins = false;
  std::string costs;  // a model of costs that the command uses beside cost.model; "" = none

  std::function<Exit()> run;  // of the chosen command
};

void add_train(CLI::App& program, CommandLine& line);
void add_plan(CLI::App& program, CommandLine& line);
void add_check(CLI::App& program, CommandLine& line);
void add_capture(CLI::App& program, CommandLine& line);
void add_simulate(CLI::App& program, CommandLine& line);
void add_trace(CLI::App& program, CommandLine& line);
void add_verify(CLI::App& program, CommandLine& line);
void add_plugins(CLI::App& program, CommandLine& line);
void add_completion(CLI::App& program, CommandLine& line);

// A subcommand that takes a job file, overrides and plugin folders.
CLI::App& add_job_command(CLI::App& program, CommandLine& line, const std::string& name,
                          const std::string& help);
void add_plugin_options(CLI::App& command, CommandLine& line);

// Refuses other texts than integers from `low` on.
CLI::Validator at_least(std::int64_t low);

// Refuses other texts than these, and suggests the nearest. Completion offers them.
CLI::Validator one_of(std::vector<std::string> known);

}  // namespace piper

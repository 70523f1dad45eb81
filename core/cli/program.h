// The command line as data: what main parses, the help prints, and completion and manual are made
// from.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "core/cli/commands.h"

namespace piper {

// Gives an empty `program` its name, every command and its help. `line` is filled in by parsing,
// and must outlive the program.
void describe_program(CLI::App& program, CommandLine& line);

// The commands of a program, or those below a command, in the order of the help.
std::vector<const CLI::App*> commands_of(const CLI::App& program);

// The options of a command that are in its help, --help among them.
std::vector<const CLI::Option*> options_of(const CLI::App& command);

// "--pair": its long name where it has one.
std::string option_name(const CLI::Option& option);

// What stands for its value, "FILE"; "" where it takes none.
std::string value_name(const CLI::Option& option);

// The values that it takes, where they are few and known.
std::vector<std::string> values_of(const CLI::Option& option);

// Its help, with its default and what it cannot be given with.
std::string option_help(const CLI::Option& option);

}  // namespace piper

// What is made from the command line's description: completion for shells, the manual page, and the
// list that docs/commands.md is compared with.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace piper {

// Each takes the whole program, as describe_program() leaves it.
std::string bash_completion(const CLI::App& program);
std::string zsh_completion(const CLI::App& program);
std::string manual_page(const CLI::App& program);

}  // namespace piper

#include <iostream>
#include <memory>

#include "core/cli/commands.h"
#include "core/cli/pages.h"

namespace piper {

void add_completion(CLI::App& program, CommandLine& line) {
  CLI::App& command = *program.add_subcommand(
      "completion", "Print what a shell sources to complete piper's words, or the manual page.");
  const auto what = std::make_shared<std::string>();
  command.add_option("what", *what, "the shell, or man for the manual page")
      ->type_name("WHAT")
      ->check(one_of({"bash", "zsh", "man"}))
      ->required();
  command.callback([&program, &line, what] {
    line.run = [&program, what] {
      std::cout << (*what == "man"   ? manual_page(program)
                    : *what == "zsh" ? zsh_completion(program)
                                     : bash_completion(program));
      return Exit::done;
    };
  });
}

}  // namespace piper

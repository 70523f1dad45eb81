// The piper program: reads the command line and runs one command. What a command does is in the
// file of its name.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>

#include "core/cli/commands.h"
#include "core/cli/open_runtime.h"
#include "core/cli/override_arguments.h"
#include "core/cli/program.h"
#include "core/cli/standard_streams.h"
#include "core/config/schema.h"
#include "core/plugin/host.h"

namespace piper {
namespace {

Exit refuse(const std::string& message, const CLI::App& command) {
  std::string path = command.get_name();
  for (const CLI::App* parent = command.get_parent(); parent != nullptr;
       parent = parent->get_parent()) {
    path = parent->get_name() + ' ' + path;
  }
  Diagnostic wrong = error("cli.usage", message);
  wrong.note("`" + path + " --help` says more");
  return report({wrong}, Exit::refused);
}

// An option of the command or, where a key has just that name, the override that was meant.
std::string suggest_option(const std::string& text, const std::vector<std::string>& known) {
  const std::string name = text.substr(0, text.find('='));
  for (const Key& key : schema()) {
    if (key.supported && "--" + key.name == name) {
      return " (did you mean '--" + key.path() + "'?)";
    }
  }
  return suggest(name, known);
}

// CLI11's errors in our words.
Exit refuse(const CLI::ParseError& caught, const CLI::App& program,
            const std::vector<std::string>& arguments) {
  const auto chosen = program.get_subcommands();
  if (chosen.empty()) {
    std::vector<std::string> known;
    for (const CLI::App* command : commands_of(program)) {
      known.push_back(command->get_name());
    }
    const auto name = std::find_if(arguments.begin(), arguments.end(),
                                   [](const std::string& a) { return !a.starts_with('-'); });
    if (name == arguments.end()) {
      return refuse("expected a command" + suggest("", known) + ", got none", program);
    }
    return refuse("unknown command '" + *name + "'" + suggest(*name, known), program);
  }
  const auto inner = chosen.front()->get_subcommands();
  const CLI::App& command = inner.empty() ? *chosen.front() : *inner.front();
  const bool takes_job = command.get_option_no_throw("job") != nullptr;
  if (dynamic_cast<const CLI::ExtrasError*>(&caught) != nullptr) {
    std::vector<std::string> known;
    for (const CLI::Option* option : command.get_options()) {
      for (const std::string& name : option->get_lnames()) {
        known.push_back("--" + name);
      }
    }
    const std::vector<std::string> remaining = chosen.front()->remaining(/*recurse=*/true);
    const std::string extra = remaining.empty() ? "" : remaining.front();
    if (extra.starts_with('-')) {
      return refuse("unknown option '" + extra + "'" + suggest_option(extra, known), command);
    }
    return takes_job ? refuse("expected one job file, got '" + extra + "' too", command)
                     : refuse("expected nothing more, got '" + extra + "'", command);
  }
  if (takes_job && dynamic_cast<const CLI::RequiredError*>(&caught) != nullptr) {
    return refuse("expected a job file, got none", command);
  }
  return refuse(caught.what(), command);
}

Exit run(std::vector<std::string> arguments) {
  CommandLine line;
  line.overrides = take_overrides(arguments);

  CLI::App program;
  describe_program(program, line);

  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // as CLI11 wants them
  try {
    program.parse(reversed);
  } catch (const CLI::Success& help) {
    program.exit(help);
    return Exit::done;
  } catch (const CLI::ParseError& caught) {
    return refuse(caught, program, arguments);
  }
  if (line.job.empty() && !line.overrides.empty()) {
    return refuse("expected nothing to override without a job, got --" + line.overrides.front(),
                  *program.get_subcommands().front());
  }
  return line.run();
}

}  // namespace
}  // namespace piper

int main(int argc, char** argv) {
  piper::secure_standard_streams();
  piper::watch_standard_output();
  auto exit = piper::Exit::failed;
  try {
    exit = piper::run({argv + 1, argv + argc});
  } catch (const std::exception& caught) {
    std::cerr << "error: " << caught.what() << " [cli.internal]\n"
              << "note: this is a fault in Piper, not in the job\n";
  }
  piper::shut_down_plugins();
  if (const auto printed = piper::flush_standard_output(); !printed) {
    std::cerr << piper::to_string(printed.error()) << '\n';
    exit = exit == piper::Exit::done ? piper::Exit::failed : exit;
  }
  std::fflush(nullptr);
  if (piper::is_runtime_open()) {
    // LibTorch takes its operators apart one by one at a usual exit: a third of a short command's
    // time.
    std::quick_exit(static_cast<int>(exit));
  }
  return static_cast<int>(exit);
}

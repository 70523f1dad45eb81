#include "core/cli/program.h"

#include <algorithm>
#include <memory>
#include <sstream>

#include "core/cli/open_runtime.h"
#include "core/cli/version.h"

namespace piper {
namespace {

// CLI11 writes defaults as `HOW=apart` and `{false}`, repeatable options as `FOLDER ...`, and what
// excludes what in the order of addresses.
class Help : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string value = value_name(*option);
    return value.empty() || option->get_positional() ? "" : ' ' + value;
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    return option_help(*option);
  }
  std::string make_option_name(const CLI::Option* option, bool positional) const override {
    return positional ? value_name(*option) : CLI::Formatter::make_option_name(option, false);
  }
  std::string make_usage(const CLI::App* command, std::string name) const override {
    const std::string usage = CLI::Formatter::make_usage(command, std::move(name));
    return command->get_option_no_throw("job") == nullptr
               ? usage
               : usage.substr(0, usage.size() - 1) + " [--section.key=value...]\n";
  }
};

}  // namespace

std::vector<const CLI::App*> commands_of(const CLI::App& program) {
  return program.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<const CLI::Option*> options_of(const CLI::App& command) {
  return command.get_options([](const CLI::Option* option) {
    return !option->get_group().empty() && option->nonpositional();
  });
}

std::string option_name(const CLI::Option& option) {
  return option.get_lnames().empty() ? '-' + option.get_snames().front()
                                     : "--" + option.get_lnames().front();
}

std::string value_name(const CLI::Option& option) {
  if (option.get_type_size() == 0) {
    return "";
  }
  const std::string with_values = option.get_type_name();
  const std::string name = with_values.substr(0, with_values.find(':'));
  return option.get_positional() && name == "TEXT" ? option.get_name(true) : name;
}

std::vector<std::string> values_of(const CLI::Option& option) {
  const std::string with_values = option.get_type_name();
  std::vector<std::string> values;
  if (const std::size_t colon = with_values.find(':'); colon != with_values.npos) {
    std::stringstream rest(with_values.substr(colon + 1));
    for (std::string value; std::getline(rest, value, '|');) {
      values.push_back(value);
    }
  }
  return values;
}

std::string option_help(const CLI::Option& option) {
  std::string help = option.get_description();
  if (const std::string preset = option.get_default_str(); !preset.empty()) {
    help += " (default: " + preset + ')';
  }
  std::vector<std::string> excluded;
  for (const CLI::Option* other : option.get_excludes()) {
    excluded.push_back(option_name(*other));
  }
  std::sort(excluded.begin(), excluded.end());
  for (std::size_t i = 0; i < excluded.size(); ++i) {
    help += (i == 0 ? "; not with " : ", ") + excluded[i];
  }
  return help;
}

void describe_program(CLI::App& program, CommandLine& line) {
  program.name("piper");
  program.description(
      "Distributed training, programmed: a job is a TOML file, a strategy is a plugin.");
  program.formatter(std::make_shared<Help>());  // before the commands, which take it over
  program.get_help_ptr()->description("print this help");
  program.set_version_flag("--version", version_text,
                           "print versions: plugin ABI, LibTorch, build");
  program.add_flag_callback(
      "--prefix", [] { throw CLI::CallForVersion(install_prefix(), 0); },
      "print the folder of this installation, for CMAKE_PREFIX_PATH");
  program.require_subcommand(1);
  program.footer(
      "Environment: PIPER_PLUGIN_PATH, folders with plugins; PIPER_LIBTORCH, LibTorch;\n"
      "PIPER_CACHE, a folder for captured models; PIPER_RUNTIME, another runtime.\n"
      "Exit status: 0 done; 1 failed while running, or parity not met; 2 refused before running;\n"
      "130 after Ctrl-C or SIGTERM.\n"
      "docs/commands.md says more of each, docs/configuration.md has every key of a job file:\n"
      "both are in share/piper of the installation.");
  add_train(program, line);
  add_plan(program, line);
  add_check(program, line);
  add_capture(program, line);
  add_simulate(program, line);
  add_trace(program, line);
  add_verify(program, line);
  add_plugins(program, line);
  add_completion(program, line);
}

}  // namespace piper

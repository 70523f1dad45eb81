#include "core/cli/commands.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <iostream>
#include <system_error>
#include <utility>

#include "core/base/log.h"

namespace piper {

void report(const Diagnostics& diagnostics) {
  std::cout.flush();
  LineLog problems(stderr);
  for (const Diagnostic& diagnostic : diagnostics) {
    problems.say(diagnostic.severity == Severity::error ? LogLevel::error : LogLevel::warning,
                 to_string(diagnostic));
  }
}

void say(std::string_view line) {
  std::cout.flush();
  LineLog(stdout).say(LogLevel::info, line);
}

Exit report(const Diagnostics& errors, Exit exit) {
  report(errors);
  return exit;
}

void add_plugin_options(CLI::App& command, CommandLine& line) {
  command
      .add_option("--plugin-dir", line.plugin_directories,
                  "a further folder with plugins; may be given several times")
      ->type_name("FOLDER")
      ->allow_extra_args(false);
  command.add_flag("--allow-unsafe-plugins", line.allow_unsafe_plugins,
                   "accept plugins that other users could have written");
}

CLI::App& add_job_command(CLI::App& program, CommandLine& line, const std::string& name,
                          const std::string& help) {
  CLI::App& command = *program.add_subcommand(name, help);
  command.add_option("job", line.job, "the job file")->type_name("JOB.toml")->required();
  add_plugin_options(command, line);
  command
      .add_option_function<std::string>(
          "--log-level",
          [](const std::string& level) {
            set_log_level(level == "error"     ? LogLevel::error
                          : level == "warning" ? LogLevel::warning
                                               : LogLevel::info);
          },
          "what is said beside the result: no warnings with error, no lines of a run with warning")
      ->type_name("LEVEL")
      ->default_str("info")
      ->check(one_of({"info", "warning", "error"}));
  command.footer(
      "Any value of the job can be overridden: --section.key=value or --section.key value, and a\n"
      "strategy's as --strategy.NAME.key=value. docs/configuration.md has every key.");
  return command;
}

CLI::Validator at_least(std::int64_t low) {
  return {[low](const std::string& text) -> std::string {
            std::int64_t value = 0;
            const auto [end, problem] =
                std::from_chars(text.data(), text.data() + text.size(), value);
            const bool fits =
                problem == std::errc() && end == text.data() + text.size() && value >= low;
            return fits ? ""
                        : "expected an integer of at least " + std::to_string(low) + ", got '" +
                              text + "'";
          },
          ""};
}

CLI::Validator one_of(std::vector<std::string> known) {
  std::string values;
  for (const std::string& value : known) {
    values += (values.empty() ? "" : "|") + value;
  }
  return {[known = std::move(known)](const std::string& text) -> std::string {
            if (std::find(known.begin(), known.end(), text) != known.end()) {
              return "";
            }
            std::string list;
            for (std::size_t i = 0; i < known.size(); ++i) {
              list += (i == 0 ? "" : i + 1 == known.size() ? " or " : ", ") + known[i];
            }
            const std::string near = nearest(text, known);
            return "expected " + list + ", got '" + text + "'" +
                   (near.empty() ? "" : " (did you mean '" + near + "'?)");
          },
          std::move(values)};
}

}  // namespace piper

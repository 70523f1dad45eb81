#include "core/cli/pages.h"

#include <algorithm>
#include <functional>
#include <sstream>
#include <string_view>
#include <vector>

#include "core/cli/program.h"
#include "core/config/schema.h"

namespace piper {
namespace {

// Calls `visit` with the program as "", then with every command as "train" or "trace compare".
void for_each_command(const CLI::App& program,
                      const std::function<void(const std::string&, const CLI::App&)>& visit) {
  const std::function<void(const std::string&, const CLI::App&)> walk =
      [&](const std::string& path, const CLI::App& command) {
        visit(path, command);
        for (const CLI::App* below : commands_of(command)) {
          walk(path + (path.empty() ? "" : " ") + below->get_name(), *below);
        }
      };
  walk("", program);
}

bool takes_job(const CLI::App& command) {
  return command.get_option_no_throw("job") != nullptr;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options_of(command)) {
    for (const std::string& name : option->get_lnames()) {
      names.push_back("--" + name);
    }
  }
  return names;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : " ") + word;
  }
  return text;
}

// `--training.steps=`, for every key of a job file.
std::string overrides() {
  std::vector<std::string> words;
  for (const Key& key : schema()) {
    if (key.supported) {
      words.push_back("--" + key.path() + '=');
    }
  }
  return joined(words);
}

// What a word may be, by the name of its value.
std::string kind_of(const CLI::Option& option) {
  const std::string name = value_name(option);
  return name.empty()                                    ? ""
         : name.starts_with("FOLDER")                    ? "folder"
         : name.find('.') != name.npos || name == "FILE" ? "file"
                                                         : "other";
}

std::string command_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* below : commands_of(command)) {
    names.push_back(below->get_name());
  }
  return joined(names);
}

bool takes_files(const CLI::App& command) {
  const auto positional =
      command.get_options([](const CLI::Option* option) { return option->get_positional(); });
  return std::any_of(positional.begin(), positional.end(),
                     [](const CLI::Option* option) { return kind_of(*option) == "file"; });
}

// Positional values that are few and known, as the shells of `piper completion`.
std::string positional_values(const CLI::App& command) {
  for (const CLI::Option* option :
       command.get_options([](const CLI::Option* o) { return o->get_positional(); })) {
    if (const auto values = values_of(*option); !values.empty()) {
      return joined(values);
    }
  }
  return "";
}

// The cases of a shell's `case $path:$previous in`, which say what the value of an option may be.
std::string value_cases(const CLI::App& program, const std::string& files,
                        const std::string& folders,
                        const std::function<std::string(const std::string&)>& words) {
  std::string text;
  for_each_command(program, [&](const std::string& path, const CLI::App& command) {
    for (const CLI::Option* option : options_of(command)) {
      const std::string kind = kind_of(*option);
      if (kind.empty()) {
        continue;
      }
      std::string pattern;
      for (const std::string& name : option->get_snames()) {
        pattern += "'" + path + ":-" + name + "'|";
      }
      pattern += "'" + path + ':' + option_name(*option) + "'";
      const auto values = values_of(*option);
      text += "    " + pattern + ") " +
              (!values.empty()    ? words(joined(values))
               : kind == "file"   ? files
               : kind == "folder" ? folders
                                  : std::string("return")) +
              " ;;\n";
    }
  });
  return text;
}

// The cases of `case $path in` that set options, words and whether files go too.
std::string command_cases(const CLI::App& program) {
  std::string text;
  for_each_command(program, [&](const std::string& path, const CLI::App& command) {
    const std::string below = command_names(command);
    text += "    '" + path + "') options='" + joined(option_names(command)) + "' words='" +
            (below.empty() ? positional_values(command) : below) + '\'' +
            (takes_files(command) ? " files=1" : "") + (takes_job(command) ? " job=1" : "") +
            " ;;\n";
  });
  return text;
}

std::string known_paths(const CLI::App& program) {
  std::string text;
  for_each_command(program, [&](const std::string& path, const CLI::App&) {
    if (!path.empty()) {
      text += (text.empty() ? "'" : "|'") + path + "'";
    }
  });
  return text;
}

// Text of a manual page: a backslash, and a dot or quote at the start of a line, are commands.
std::string roff(std::string_view text) {
  std::string out;
  bool start = true;
  for (const char c : text) {
    if (start && (c == '.' || c == '\'')) {
      out += "\\&";
    }
    out += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c);
    start = c == '\n';
  }
  return out;
}

std::string manual_of(const CLI::App& command) {
  std::string text;
  for (const CLI::Option* option :
       command.get_options([](const CLI::Option* o) { return !o->get_group().empty(); })) {
    const std::string value = value_name(*option);
    std::string names;
    for (const std::string& name : option->get_snames()) {
      names += '-' + name + ", ";
    }
    if (option->nonpositional()) {
      names += option_name(*option);
    }
    text += ".TP\n";
    text += option->nonpositional() ? "\\fB" + roff(names) + "\\fR" +
                                          (value.empty() ? "" : " \\fI" + roff(value) + "\\fR")
                                    : "\\fI" + roff(value) + "\\fR";
    text += '\n' + roff(option_help(*option)) + '\n';
  }
  return text;
}

}  // namespace

std::string bash_completion(const CLI::App& program) {
  const auto words = [](const std::string& values) {
    return "COMPREPLY=($(compgen -W '" + values + "' -- \"$word\")); return";
  };
  return R"(# Completion of piper in bash; made by `piper completion bash`.
_piper() {
  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
  local path= options= words= files= job= i
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case "${path:+$path }${COMP_WORDS[i]}" in
    )" + known_paths(program) +
         R"() path="${path:+$path }${COMP_WORDS[i]}" ;;
    esac
  done
  COMPREPLY=()
  case $path:$previous in
)" +
         value_cases(program, "COMPREPLY=($(compgen -f -- \"$word\")); return",
                     "COMPREPLY=($(compgen -d -- \"$word\")); return", words) +
         R"(  esac
  case $path in
)" + command_cases(program) +
         R"(  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$word"))
    if [[ $job && $word == --*.* ]]; then
      COMPREPLY=($(compgen -W ')" +
         overrides() + R"(' -- "$word"))
      compopt -o nospace 2>/dev/null
    fi
  else
    COMPREPLY=($(compgen -W "$words" -- "$word"))
    [[ ! $files ]] || COMPREPLY+=($(compgen -f -- "$word"))
  fi
}
complete -o filenames -F _piper piper
)";
}

std::string zsh_completion(const CLI::App& program) {
  const auto words = [](const std::string& values) { return "compadd -- " + values + "; return"; };
  return R"(#compdef piper
# Completion of piper in zsh; made by `piper completion zsh`.
_piper() {
  local word=${words[CURRENT]} previous=${words[CURRENT-1]}
  local path_= options= below= files= job= i
  for ((i = 2; i < CURRENT; ++i)); do
    case "${path_:+$path_ }${words[i]}" in
    )" + known_paths(program) +
         R"() path_="${path_:+$path_ }${words[i]}" ;;
    esac
  done
  case $path_:$previous in
)" + value_cases(program, "_files; return", "_files -/; return", words) +
         R"(  esac
  case $path_ in
)" +
         [&] {
           std::string cases = command_cases(program);
           for (std::size_t at = 0; (at = cases.find("' words='", at)) != cases.npos; ++at) {
             cases.replace(at, 9, "' below='");
           }
           return cases;
         }() +
         R"(  esac
  if [[ $word == -* ]]; then
    if [[ -n $job && $word == --*.* ]]; then
      compadd -S '' -- )" +
         overrides() + R"(
    else
      compadd -- ${=options}
    fi
  else
    [[ -z $below ]] || compadd -- ${=below}
    [[ -z $files ]] || _files
  fi
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  _piper "$@"
else
  compdef _piper piper
fi
)";
}

std::string manual_page(const CLI::App& program) {
  std::string text = ".TH PIPER 1 \"\" \"piper " PIPER_VERSION
                     "\"\n.SH NAME\npiper \\- train on many "
                     "devices with strategies that are plugins\n.SH SYNOPSIS\n.B piper\n"
                     ".I COMMAND\n.RI [ ARGUMENTS ]\n.SH DESCRIPTION\n" +
                     roff(program.get_description()) + '\n' + manual_of(program);
  text += ".SH COMMANDS\n";
  for_each_command(program, [&](const std::string& path, const CLI::App& command) {
    if (path.empty() || !commands_of(command).empty()) {
      return;
    }
    text += ".SS \"piper " + path + "\"\n" + roff(command.get_description()) + '\n' +
            manual_of(command);
    if (takes_job(command)) {
      text +=
          ".TP\n\\fB\\-\\-section.key=\\fR\\fIvalue\\fR\nanother value for a key of the job; "
          "\\fB\\-\\-strategy.NAME.key=\\fR for an option of a strategy\n";
    }
  });
  text += ".SH NOTES\n.nf\n" + roff(program.get_footer()) + "\n.fi\n";
  return text;
}

}  // namespace piper

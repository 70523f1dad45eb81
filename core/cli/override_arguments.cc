#include "core/cli/override_arguments.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "core/config/schema.h"

namespace piper {
namespace {

bool is_override(std::string_view argument) {
  return argument.starts_with("--") &&
         argument.substr(0, argument.find('=')).find('.') != std::string_view::npos;
}

// `-1` is a value.
bool is_option(std::string_view argument) {
  return argument.starts_with("--") || (argument.size() > 1 && argument[0] == '-' &&
                                        std::isalpha(static_cast<unsigned char>(argument[1])) != 0);
}

bool is_toml_file(std::string_view argument) {
  return argument.ends_with(".toml") && !is_option(argument);
}

// nullptr for what only a plugin, a model or a mesh knows.
const Key* key_of(std::string_view path) {
  const std::size_t dot = path.find('.');
  return find_key(path.substr(0, dot), path.substr(dot + 1));
}

bool takes_text(const Key* key) {
  return key == nullptr || key->type == Key::Type::text || key->type == Key::Type::texts;
}

}  // namespace

std::vector<std::string> take_overrides(std::vector<std::string>& arguments) {
  std::vector<std::string> overrides, rest;
  const auto files = std::count_if(arguments.begin(), arguments.end(), is_toml_file);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!is_override(arguments[i])) {
      rest.push_back(std::move(arguments[i]));
      continue;
    }
    std::string override = arguments[i].substr(2);
    if (override.find('=') != std::string::npos) {
      overrides.push_back(std::move(override));
      continue;
    }
    const Key* key = key_of(override);
    const bool has_next = i + 1 < arguments.size() && !is_option(arguments[i + 1]);
    const std::string next = has_next ? arguments[i + 1] : "";
    if (key != nullptr && key->type == Key::Type::boolean) {
      const bool said = next == "true" || next == "false";
      overrides.push_back(override + '=' + (said ? next : "true"));
      i += said ? 1 : 0;
      continue;
    }
    const bool is_job = is_toml_file(next) && (!takes_text(key) || files == 1);
    if (has_next && !is_job) {
      override += '=' + next;
      ++i;
    }
    overrides.push_back(std::move(override));
  }
  arguments = std::move(rest);
  return overrides;
}

}  // namespace piper

#include "core/plugin/options.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "core/config/schema.h"

namespace piper {
namespace {

using Items = std::vector<OptionValue>;

std::string noun(OptionType type, bool plural) {
  switch (type) {
    case OptionType::boolean:
      return "true or false";
    case OptionType::i64:
      return plural ? "integers" : "an integer";
    case OptionType::f64:
      return plural ? "numbers" : "a number";
    case OptionType::string:
      return plural ? "texts" : "a text";
    case OptionType::enumeration:
      return "";
  }
  return "";
}

std::string item_noun(const OptionSpec& spec, bool plural) {
  if (spec.type != OptionType::enumeration) {
    return noun(spec.type, plural);
  }
  std::string names;
  for (const std::string& name : spec.values) {
    names += (names.empty() ? "" : ", ") + toml_text(name);
  }
  return (spec.values.size() > 1 ? "one of " : "") + names;
}

std::string type_text(const OptionSpec& spec) {
  return spec.list ? "a list of " + item_noun(spec, true) : item_noun(spec, false);
}

std::string range_text(const OptionSpec& spec) {
  std::string text;
  if (spec.min) {
    text += " of at least " + to_text(*spec.min);
  }
  if (spec.max) {
    text += (spec.min ? " and at most " : " of at most ") + to_text(*spec.max);
  }
  return text;
}

std::optional<double> as_number(const OptionValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value.value)) {
    return static_cast<double>(*integer);
  }
  if (const auto* number = std::get_if<double>(&value.value)) {
    return *number;
  }
  return std::nullopt;
}

bool has_type(OptionType type, const OptionValue& value) {
  switch (type) {
    case OptionType::boolean:
      return std::holds_alternative<bool>(value.value);
    case OptionType::i64:
      return std::holds_alternative<std::int64_t>(value.value);
    case OptionType::f64:
      return as_number(value).has_value();
    case OptionType::string:
    case OptionType::enumeration:
      return std::holds_alternative<std::string>(value.value);
  }
  return false;
}

bool below(const OptionValue& a, const OptionValue& b) {
  const auto* left = std::get_if<std::int64_t>(&a.value);
  const auto* right = std::get_if<std::int64_t>(&b.value);
  return left != nullptr && right != nullptr ? *left < *right : *as_number(a) < *as_number(b);
}

std::optional<Diagnostic> check_item(const OptionSpec& spec, const std::string& path,
                                     const OptionValue& value) {
  const auto refuse = [&](const char* code, const std::string& expected,
                          const std::string& hint = "") {
    return error(code, path + ": expected " + expected + ", got " + to_text(value) + hint,
                 value.where);
  };
  if (!has_type(spec.type, value)) {
    return refuse("option.type", type_text(spec));
  }
  if (spec.type == OptionType::i64 || spec.type == OptionType::f64) {
    if (!std::isfinite(*as_number(value))) {
      return refuse("option.range", "a finite number");
    }
    if ((spec.min && below(value, *spec.min)) || (spec.max && below(*spec.max, value))) {
      return refuse("option.range", item_noun(spec, false) + range_text(spec));
    }
  }
  if (spec.type == OptionType::enumeration) {
    const std::string& name = std::get<std::string>(value.value);
    if (spec.value_of(name).empty()) {
      const std::string near = nearest(name, spec.values);
      return refuse("option.choice", item_noun(spec, false),
                    near.empty() ? "" : " (did you mean '" + near + "'?)");
    }
  }
  return std::nullopt;
}

void append(Option& option, const OptionValue& item) {
  option.places.push_back(item.where);
  switch (option.spec.type) {
    case OptionType::boolean:
      option.integers.push_back(std::get<bool>(item.value) ? 1 : 0);
      break;
    case OptionType::i64:
      option.integers.push_back(std::get<std::int64_t>(item.value));
      break;
    case OptionType::f64:
      option.numbers.push_back(*as_number(item));
      break;
    case OptionType::string:
      option.texts.push_back(std::get<std::string>(item.value));
      break;
    case OptionType::enumeration:
      option.texts.push_back(option.spec.value_of(std::get<std::string>(item.value)));
      break;
  }
}

Option make(const OptionSpec& spec, Option::State state, const OptionValue* value,
            const Location& where) {
  Option option;
  option.spec = spec;
  option.state = state;
  option.where = where;
  if (value == nullptr) {
    return option;
  }
  if (!spec.list) {
    append(option, *value);
  } else {
    for (const OptionValue& item : std::get<Items>(value->value)) {
      append(option, item);
    }
  }
  if (state ==
      Option::State::fallback) {  // its places are in the manifest, which the user cannot change
    std::fill(option.places.begin(), option.places.end(), where);
  }
  return option;
}

}  // namespace

std::string to_text(const OptionValue& value) {
  struct Printer {
    std::string operator()(bool flag) const { return flag ? "true" : "false"; }
    std::string operator()(std::int64_t integer) const { return std::to_string(integer); }
    std::string operator()(double number) const {
      const std::string digits = toml_number(number);
      return digits.find_first_not_of("-0123456789") == std::string::npos ? digits + ".0" : digits;
    }
    std::string operator()(const std::string& text) const { return toml_text(text); }
    std::string operator()(const Items& items) const {
      std::string list;
      for (const OptionValue& item : items) {
        list += (list.empty() ? "" : ", ") + to_text(item);
      }
      return "[" + list + "]";
    }
  };
  return std::visit(Printer{}, value.value);
}

std::string expectation(const OptionSpec& spec) {
  return type_text(spec) + range_text(spec);
}

Diagnostics check_option(const OptionSpec& spec, const std::string& path,
                         const OptionValue& value) {
  Diagnostics mistakes;
  const auto* items = std::get_if<Items>(&value.value);
  if (spec.list != (items != nullptr)) {
    mistakes.push_back(error("option.type",
                             path + ": expected " + type_text(spec) + ", got " + to_text(value),
                             value.where));
    return mistakes;
  }
  if (!spec.list) {
    if (auto mistake = check_item(spec, path, value)) {
      mistakes.push_back(std::move(*mistake));
    }
    return mistakes;
  }
  for (std::size_t i = 0; i < items->size(); ++i) {
    if (auto mistake = check_item(spec, path + "[" + std::to_string(i) + "]", (*items)[i])) {
      mistakes.push_back(std::move(*mistake));
    }
  }
  return mistakes;
}

Expected<std::vector<Option>> resolve_options(const Manifest& manifest,
                                              const StrategyConfig& strategy) {
  Diagnostics mistakes;
  std::vector<std::string> known;
  for (const OptionSpec& spec : manifest.options) {
    known.push_back(spec.name);
  }
  for (const auto& [name, value] : strategy.options) {
    if (manifest.option(name) == nullptr) {
      mistakes.push_back(error(
          "option.unknown_key",
          "strategy '" + manifest.id + "' has no option '" + name + "'" + suggest(name, known),
          value.where));
    }
  }
  std::vector<Option> options;
  for (const OptionSpec& spec : manifest.options) {
    const auto written =
        std::find_if(strategy.options.begin(), strategy.options.end(),
                     [&](const auto& option) { return option.first == spec.name; });
    if (written != strategy.options.end()) {
      const std::string path = strategy.name + "." + spec.name;
      Diagnostics found = check_option(spec, path, written->second);
      if (found.empty()) {
        options.push_back(
            make(spec, Option::State::written, &written->second, written->second.where));
      }
      mistakes.insert(mistakes.end(), found.begin(), found.end());
    } else if (spec.required) {
      mistakes.push_back(error("option.required",
                               "strategy '" + manifest.id + "' needs the option '" + spec.name +
                                   "': " + expectation(spec),
                               strategy.where));
    } else if (spec.fallback) {
      options.push_back(make(spec, Option::State::fallback, &*spec.fallback, strategy.where));
    } else {
      options.push_back(make(spec, Option::State::absent, nullptr, strategy.where));
    }
  }
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  return options;
}

}  // namespace piper

// A strategy's options: what its [[strategy]] table says, checked against its manifest.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/config/config.h"
#include "core/plugin/manifest.h"

namespace piper {

// An option with its value in the form in which the ABI gives it out. Of the lists, the one of the
// option's type is used; a single value is a list of one; bool is 0 and 1.
struct Option {
  enum class State : std::uint8_t { absent, fallback, written };
  OptionSpec spec;
  State state = State::absent;
  std::vector<std::int64_t> integers;
  std::vector<double> numbers;
  std::vector<std::string> texts;
  Location where;                // of the value; of the [[strategy]] table, where it is not written
  std::vector<Location> places;  // of each item
};

// What is wrong with `value` as a value of `spec`; `path` names it in messages. Codes: option.type,
// option.range, option.choice.
Diagnostics check_option(const OptionSpec& spec, const std::string& path, const OptionValue& value);

// Every option of the manifest, in its order. Further codes: option.unknown_key, option.required.
Expected<std::vector<Option>> resolve_options(const Manifest& manifest,
                                              const StrategyConfig& strategy);

// `an integer of at least 1`, `one of "1f1b", "gpipe"`, `a list of numbers`.
std::string expectation(const OptionSpec& spec);
// In TOML's syntax.
std::string to_text(const OptionValue& value);

}  // namespace piper

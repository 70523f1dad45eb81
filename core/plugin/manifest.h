// What a plugin says about itself before any of its code runs: a TOML text in the ELF section
// "piper.manifest".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/config/config.h"

namespace piper {

enum class OptionType : std::uint8_t { boolean, i64, f64, string, enumeration };
std::string_view to_string(
    OptionType type);  // as manifests write it: "bool", "i64", "f64", "str", "enum"

// One option of a strategy: a key that its [[strategy]] table may have.
struct OptionSpec {
  std::string name;
  OptionType type = OptionType::i64;  // of the items, where `list`
  bool list = false;
  bool required = false;
  bool saves_memory = false;            // the higher, the less memory a rank needs; then an i64
                                        // with min and max
  std::optional<OptionValue> fallback;  // the default; none: absent unless written
  std::optional<OptionValue> min, max;  // both included; of every item, where `list`
  std::vector<std::string> values;      // of an enum
  // Further names of an enum's values, as other systems have them: {"ZBVZeroBubble", "zbv"}.
  std::vector<std::pair<std::string, std::string>> spellings;
  std::string unit;  // "" = none
  std::string help;

  // The value of an enum that `text` means, by its own or a further name in any of the spellings
  // that known_spelling takes; "" where it is none.
  std::string value_of(std::string_view text) const;
};

// `id` or `id >= 1.2` (also >, <=, <, ==), with the author's reason, which is printed when it is
// not met.
struct Capability {
  std::string id;
  std::string comparison;  // "" = any version
  std::string version;
  std::string reason;
  Location where;
};
bool accepts(const Capability& wanted, std::string_view version);
std::string to_string(const Capability& wanted);  // `zero >= 1.2`

struct Manifest {
  std::string id;                              // [a-z][a-z0-9_]*
  std::string version;                         // major.minor.patch
  std::uint32_t abi_major = 0, abi_minor = 0;  // the lowest host it works with
  std::string summary;
  std::vector<OptionSpec> options;
  std::vector<Capability> provides, requirements, conflicts;  // a plugin provides its own id
  std::vector<std::string> axes;                              // mesh axes that it may claim

  const OptionSpec* option(std::string_view name) const;
};

// `source` names the text in errors. Codes: manifest.*; every mistake is reported.
Expected<Manifest> parse_manifest(std::string_view text, const std::string& source);

}  // namespace piper

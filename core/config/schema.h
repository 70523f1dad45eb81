// Every key of a job file, in one place: its type, range, default and help. The loader, `print`,
// overrides and docs/configuration.md all read this table, so adding a key is one entry in
// schema.cc and one member in config.h.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/config/config.h"
#include "core/config/raw.h"

namespace piper {

// Bounds of a number; an open bound is not itself allowed.
struct Bounds {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false, high_open = false;

  bool holds(double value) const;
};

struct Key {
  enum class Type : std::uint8_t { boolean, integer, number, text, texts, choice, filter };

  std::string section, name;
  std::string help;
  Type type = Type::text;
  Bounds bounds;                     // numbers
  std::vector<std::string> choices;  // choice: what this version knows
  std::vector<std::string> later;    // choice: designed, not implemented
  bool supported = true;             // false: designed, not implemented

  // Stores a value that `check` has passed, and gives it back as TOML, "" where it is unset.
  std::function<void(Config&, const RawValue&)> store;
  std::function<std::string(const Config&)> text;

  std::string path() const { return section + '.' + name; }
};

// In the order in which sections and keys are printed.
std::span<const Key> schema();
const Key* find_key(std::string_view section, std::string_view name);

// Whether the job gives the key another value than its default.
bool is_given(const Config& config, std::string_view path);

// Key in Config::locations of one glob of one [[optimizer.group]].
std::string glob_key(std::size_t group, std::size_t glob);

// Names of the sections that this version implements, with those that have no fixed keys (mesh,
// strategy); and of a section's keys.
const std::vector<std::string>& section_names();
std::vector<std::string> key_names(std::string_view section);

// `a number of at least 0`, for help and messages.
std::string expectation(const Key& key);

// Type, range and choice. `path` is what messages call the key.
std::optional<Diagnostic> check(const Key& key, const std::string& path, const RawValue& value);

// A TOML string, number or value that reads back as the same value.
std::string toml_text(std::string_view value);
std::string toml_value(const RawValue& value);
std::string toml_number(double value);

// The table of keys in docs/configuration.md, as Markdown.
std::string reference();

}  // namespace piper

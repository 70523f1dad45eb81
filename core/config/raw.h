// A job file before it is checked: what TOML allows, with the place of every key and value, in file
// order.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/diagnostic.h"

namespace piper {

struct RawEntry;

struct RawValue {
  enum class Kind : std::uint8_t { boolean, integer, number, text, date, list, table };
  Kind kind = Kind::table;
  bool boolean = false;
  std::int64_t integer = 0;
  double number = 0;
  std::string text;
  std::vector<RawValue> items;    // list
  std::vector<RawEntry> entries;  // table
  Location where;

  const RawValue* find(std::string_view key) const;
  RawValue* find(std::string_view key);
  // A list of tables: [[name]].
  bool is_tables() const;
};

struct RawEntry {
  std::string key;
  Location where;
  RawValue value;
};

// As a message shows it: `3`, `"abc"`, `a list`.
std::string describe(const RawValue& value);

// Reads and parses a job file; refuses what toml++ cannot be trusted with (long texts, other
// encodings).
Expected<RawValue> read_raw(const std::string& file);

// The same for a text; `file` is only for messages.
Expected<RawValue> parse_raw(std::string_view text, const std::string& file);

// One value in TOML's syntax, as an override has it; kind `text` with the text itself where it is
// none.
RawValue parse_raw_value(std::string_view text, const Location& where);

}  // namespace piper

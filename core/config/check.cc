// Checks of one value against its key, and the texts that go with a key.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "core/config/schema.h"
#include "core/config/spelling.h"

namespace piper {
namespace {

std::string low_text(const Bounds& bounds) {
  return (bounds.low_open ? "above " : "at least ") + toml_number(bounds.low);
}
std::string high_text(const Bounds& bounds) {
  return (bounds.high_open ? "below " : "at most ") + toml_number(bounds.high);
}

std::string type_text(const Key& key) {
  switch (key.type) {
    case Key::Type::boolean:
      return "true or false";
    case Key::Type::integer:
      return "an integer";
    case Key::Type::number:
      return "a number";
    case Key::Type::text:
      return "a text";
    case Key::Type::texts:
      return "a text or a list of texts";
    case Key::Type::choice: {
      std::string names;
      for (const std::string& name : key.choices) {
        names += (names.empty() ? "" : ", ") + toml_text(name);
      }
      return (key.choices.size() > 1 ? "one of " : "") + names;
    }
    case Key::Type::filter:
      return "a filter such as { layer = \"0..3\" }";
  }
  return "?";
}

bool has_type(Key::Type type, const RawValue& value) {
  using Kind = RawValue::Kind;
  switch (type) {
    case Key::Type::boolean:
      return value.kind == Kind::boolean;
    case Key::Type::integer:
      return value.kind == Kind::integer;
    case Key::Type::number:
      return value.kind == Kind::integer || value.kind == Kind::number;
    case Key::Type::text:
    case Key::Type::choice:
      return value.kind == Kind::text;
    case Key::Type::filter:
      return value.kind == Kind::table;
    case Key::Type::texts:
      return value.kind == Kind::text ||
             (value.kind == Kind::list &&
              std::all_of(value.items.begin(), value.items.end(),
                          [](const RawValue& item) { return item.kind == Kind::text; }));
  }
  return false;
}

// What a list that should hold texts holds instead.
const RawValue& culprit(const Key& key, const RawValue& value) {
  if (key.type == Key::Type::texts) {
    for (const RawValue& item : value.items) {
      if (item.kind != RawValue::Kind::text) {
        return item;
      }
    }
  }
  return value;
}

}  // namespace

std::string toml_text(std::string_view value) {
  std::string text = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') {
      text += '\\';
      text += c;
    } else if (c == '\n') {
      text += "\\n";
    } else if (c == '\t') {
      text += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      std::array<char, 8> escape{};
      std::snprintf(escape.data(), escape.size(), "\\u%04X", static_cast<unsigned>(c));
      text += escape.data();
    } else {
      text += c;
    }
  }
  return text + '"';
}

std::string toml_number(double value) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  return {digits.data(), end};
}

std::string expectation(const Key& key) {
  std::string text = type_text(key);
  if (std::isfinite(key.bounds.low)) {
    text += (key.bounds.low_open ? " " : " of ") + low_text(key.bounds);
  }
  if (std::isfinite(key.bounds.high)) {
    text += (std::isfinite(key.bounds.low) ? " and " : " of ") + high_text(key.bounds);
  }
  return text;
}

std::optional<Diagnostic> check(const Key& key, const std::string& path, const RawValue& value) {
  const auto refuse = [&](std::string code, const std::string& expected, const RawValue& got,
                          const std::string& hint = "") {
    return error(std::move(code), path + ": expected " + expected + ", got " + describe(got) + hint,
                 got.where);
  };
  if (!has_type(key.type, value)) {
    return refuse("config.type", type_text(key), culprit(key, value));
  }
  switch (key.type) {
    case Key::Type::integer:
    case Key::Type::number: {
      const double number =
          value.kind == RawValue::Kind::integer ? static_cast<double>(value.integer) : value.number;
      if (!std::isfinite(number)) {
        return refuse("config.range", "a finite number", value);
      }
      if (key.bounds.holds(number)) {
        return std::nullopt;
      }
      const bool too_low = number <= key.bounds.low;
      const bool open = too_low ? key.bounds.low_open : key.bounds.high_open;
      return refuse("config.range",
                    type_text(key) + (open ? " " : " of ") +
                        (too_low ? low_text(key.bounds) : high_text(key.bounds)),
                    value);
    }
    case Key::Type::texts:
      for (const RawValue& item : value.items) {
        if (item.text.empty()) {
          return refuse("config.range", "texts that are not empty", item);
        }
      }
      return std::nullopt;
    case Key::Type::choice: {
      if (!known_spelling(value.text, key.choices).empty()) {
        return std::nullopt;
      }
      if (!known_spelling(value.text, key.later).empty()) {
        return error("config.unsupported",
                     path + ": " + describe(value) +
                         " is not supported by this version (expected " + type_text(key) + ")",
                     value.where);
      }
      const std::string near = nearest(value.text, key.choices);
      return refuse("config.choice", type_text(key), value,
                    near.empty() ? "" : " (did you mean '" + near + "'?)");
    }
    case Key::Type::boolean:
    case Key::Type::text:
    case Key::Type::filter:
      return std::nullopt;
  }
  return std::nullopt;
}

std::string reference() {
  static const Config defaults;
  std::string text;
  std::string section;
  for (const Key& key : schema()) {
    if (key.section != section) {
      section = key.section;
      text += (text.empty() ? "" : "\n") + std::string("### `[") + section + "]`\n\n";
      text += "| key | value | default | meaning |\n| --- | --- | --- | --- |\n";
    }
    const std::string value = key.supported ? expectation(key) : "refused by this version";
    const std::string preset = key.supported ? key.text(defaults) : "";
    text += "| `" + key.name + "` | " + value + " | " + (preset.empty() ? "" : '`' + preset + '`') +
            " | " + key.help + " |\n";
  }
  return text;
}

}  // namespace piper

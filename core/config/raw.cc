#include "core/config/raw.h"

#include <toml++/toml.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <tuple>

#include "core/base/utf8.h"

namespace piper {
namespace {

// Points at the first byte that is not UTF-8.
Status check_encoding(std::string_view text, const std::string& file) {
  const std::size_t end = utf8_prefix(text);
  if (end == text.size()) {
    return {};
  }
  Location at{file, 1, 1};
  for (std::size_t i = 0; i < end; i += sequence_length(text.substr(i))) {
    at.line += text[i] == '\n' ? 1 : 0;
    at.column = text[i] == '\n' ? 1 : at.column + 1;
  }
  std::array<char, 4> hex{};
  std::to_chars(hex.data(), hex.data() + 2, static_cast<unsigned char>(text[end]), 16);
  return fail(
      error("config.encoding", "expected UTF-8, got the byte 0x" + std::string(hex.data()), at));
}

// toml++ 3.3 overflows the stack on dotted keys with tens of thousands of parts.
constexpr std::size_t kLongestText = 32 * 1024;

// No job file nests deeper; what does is not looked into.
constexpr int kDeepest = 8;

Location location(const toml::source_position& at, const std::string& file) {
  return {file, at.line, at.column};
}

RawValue convert(const toml::node& node, const std::string& file, int depth) {
  RawValue value;
  value.where = location(node.source().begin, file);
  if (const toml::table* table = node.as_table()) {
    value.kind = RawValue::Kind::table;
    if (depth < kDeepest) {
      for (auto&& [key, child] : *table) {
        value.entries.push_back({std::string(key.str()), location(key.source().begin, file),
                                 convert(child, file, depth + 1)});
      }
    }
    std::stable_sort(
        value.entries.begin(), value.entries.end(), [](const RawEntry& a, const RawEntry& b) {
          return std::tie(a.where.line, a.where.column) < std::tie(b.where.line, b.where.column);
        });
  } else if (const toml::array* array = node.as_array()) {
    value.kind = RawValue::Kind::list;
    if (depth < kDeepest) {
      for (const toml::node& item : *array) {
        value.items.push_back(convert(item, file, depth + 1));
      }
    }
  } else if (const auto* boolean = node.as_boolean()) {
    value.kind = RawValue::Kind::boolean;
    value.boolean = boolean->get();
  } else if (const auto* integer = node.as_integer()) {
    value.kind = RawValue::Kind::integer;
    value.integer = integer->get();
  } else if (const auto* number = node.as_floating_point()) {
    value.kind = RawValue::Kind::number;
    value.number = number->get();
  } else if (const auto* text = node.as_string()) {
    value.kind = RawValue::Kind::text;
    value.text = text->get();
  } else {
    value.kind = RawValue::Kind::date;
  }
  return value;
}

std::string_view line_of(std::string_view text, std::uint32_t line) {
  for (; line > 1; --line) {
    const std::size_t end = text.find('\n');
    text = end == std::string_view::npos ? "" : text.substr(end + 1);
  }
  return text.substr(0, text.find('\n'));
}

// The column, in code points, of byte `offset` of a line, and back.
std::uint32_t column_at(std::string_view line, std::size_t offset) {
  std::uint32_t column = 1;
  for (std::size_t i = 0; i < offset && i < line.size(); i += sequence_length(line.substr(i))) {
    ++column;
  }
  return column;
}
std::size_t offset_at(std::string_view line, std::uint32_t column) {
  std::size_t offset = 0;
  for (; column > 1 && offset < line.size(); --column) {
    offset += sequence_length(line.substr(offset));
  }
  return std::min(offset, line.size());
}

// toml++ points at the second value; the reader looks for the key before its equals sign.
Location key_before(std::string_view text, Location value) {
  const std::string_view line = line_of(text, value.line);
  const std::size_t equals = line.rfind('=', offset_at(line, value.column));
  if (equals == std::string_view::npos || equals == 0) {
    return value;
  }
  const std::size_t last = line.find_last_not_of(" \t", equals - 1);
  if (last == std::string_view::npos) {
    return value;
  }
  const std::size_t before = line.find_last_of(" \t{,", last);
  value.column = column_at(line, before == std::string_view::npos ? 0 : before + 1);
  return value;
}

// The text between the last pair of single quotes of one of toml++'s messages.
std::string quoted_name(std::string_view message) {
  const std::size_t end = message.rfind('\'');
  const std::size_t begin = end == std::string_view::npos || end == 0
                                ? std::string_view::npos
                                : message.rfind('\'', end - 1);
  return begin == std::string_view::npos ? ""
                                         : std::string(message.substr(begin + 1, end - begin - 1));
}

// Where the text before `at` already has `name`: below its last header, or as a header itself.
std::optional<Location> first_place(std::string_view text, const Location& at,
                                    const std::string& name, bool header) {
  std::size_t end = 0;
  for (std::uint32_t line = 1; line < at.line && end != std::string_view::npos; ++line) {
    end = text.find('\n', end);
    end = end == std::string_view::npos ? end : end + 1;
  }
  const std::string before(text.substr(0, end));
  std::string path;
  const std::size_t last = ("\n" + before).rfind("\n[");
  if (!header && last != std::string::npos) {
    const std::size_t begin = std::min(before.find_first_not_of('[', last), before.size());
    path = before.substr(begin, before.find(']', begin) - begin);
  }
  try {
    const toml::table prefix = toml::parse(before, at.file);
    if (header) {
      const auto found = prefix.at_path(name);
      return found ? std::optional(location(found.node()->source().begin, at.file)) : std::nullopt;
    }
    toml::node_view<const toml::node> parent =
        path.empty() ? toml::node_view<const toml::node>(prefix) : prefix.at_path(path);
    if (const toml::array* tables = parent.as_array(); tables != nullptr && !tables->empty()) {
      parent = toml::node_view<const toml::node>(tables->back());
    }
    if (const toml::table* table = parent.as_table()) {
      for (auto&& [key, child] : *table) {
        if (key.str() == name) {
          return location(key.source().begin, at.file);
        }
      }
    }
  } catch (const toml::parse_error&) {
    // The part before does not stand alone: no note.
  }
  return std::nullopt;
}

Diagnostic syntax_error(const toml::parse_error& caught, std::string_view text,
                        const std::string& file) {
  const std::string message(caught.description());
  const Location at = location(caught.source().begin, file);
  if (message.find("cannot redefine existing") != std::string::npos) {
    const std::string name = quoted_name(message);
    const bool header = message.find("table header") != std::string::npos;
    Diagnostic twice =
        header ? error("config.duplicate_section", "section [" + name + "] is given twice", at)
               : error("config.duplicate_key", "key '" + name + "' is given twice",
                       key_before(text, at));
    if (const auto first = first_place(text, at, name, header)) {
      twice.note("first given here", *first);
    }
    return twice;
  }
  constexpr std::string_view kPrefix = "Error while parsing ";
  const bool prefixed = message.starts_with(kPrefix);
  return error("config.syntax", "not TOML: " + message.substr(prefixed ? kPrefix.size() : 0), at);
}

std::string shown(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  if (text.size() <= kLongest) {
    return '"' + std::string(text) + '"';
  }
  std::size_t length = 0;
  while (length < kLongest) {
    length += std::max<std::size_t>(1, sequence_length(text.substr(length)));
  }
  return '"' + std::string(text.substr(0, length)) + "...\"";
}

}  // namespace

const RawValue* RawValue::find(std::string_view key) const {
  for (const RawEntry& entry : entries) {
    if (entry.key == key) {
      return &entry.value;
    }
  }
  return nullptr;
}

RawValue* RawValue::find(std::string_view key) {
  return const_cast<RawValue*>(std::as_const(*this).find(key));
}

bool RawValue::is_tables() const {
  return kind == Kind::list && !items.empty() &&
         std::all_of(items.begin(), items.end(),
                     [](const RawValue& item) { return item.kind == Kind::table; });
}

std::string describe(const RawValue& value) {
  switch (value.kind) {
    case RawValue::Kind::boolean:
      return value.boolean ? "true" : "false";
    case RawValue::Kind::integer:
      return std::to_string(value.integer);
    case RawValue::Kind::number: {
      std::array<char, 32> digits{};
      const auto end =
          std::to_chars(digits.data(), digits.data() + digits.size(), value.number).ptr;
      const std::string text(digits.data(), end);
      const bool whole = text.find_first_not_of("-0123456789") == std::string::npos;
      return whole ? text + ".0" : text;
    }
    case RawValue::Kind::text:
      return shown(value.text);
    case RawValue::Kind::date:
      return "a date or time";
    case RawValue::Kind::list:
      return value.items.empty() ? "an empty list" : "a list";
    case RawValue::Kind::table:
      return "a table";
  }
  return "?";
}

Expected<RawValue> parse_raw(std::string_view text, const std::string& file) {
  if (text.size() > kLongestText) {
    return fail(
        error("config.too_long", "expected a job file of at most 32 KiB, got more", {file}));
  }
  PIPER_TRY(check_encoding(text, file));
  try {
    return convert(toml::parse(text, file), file, 0);
  } catch (const toml::parse_error& caught) {
    return fail(syntax_error(caught, text, file));
  }
}

Expected<RawValue> read_raw(const std::string& file) {
  std::error_code status_error;
  const auto status = std::filesystem::status(file, status_error);
  if (status.type() == std::filesystem::file_type::not_found) {
    return fail(error("config.file", "expected a job file, got no such file", {file}));
  }
  if (std::filesystem::is_directory(status)) {
    return fail(error("config.file", "expected a job file, got a directory", {file}));
  }
  std::ifstream stream(file, std::ios::binary);
  std::string text(kLongestText + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad() || (!stream && !stream.eof())) {
    return fail(error("config.file", "expected a job file, got one that cannot be read", {file}));
  }
  text.resize(static_cast<std::size_t>(stream.gcount()));
  PIPER_ASSIGN(RawValue root, parse_raw(text, file));
  if (root.entries.empty()) {
    return fail(error("config.empty",
                      text.empty() ? "expected a job file, got an empty file"
                                   : "expected a job file, got one without any section",
                      {file}));
  }
  return root;
}

RawValue parse_raw_value(std::string_view text, const Location& where) {
  RawValue value;
  if (text.find('\n') == std::string_view::npos) {
    if (auto parsed = parse_raw("value = " + std::string(text), where.file);
        parsed && parsed->entries.size() == 1 && parsed->entries[0].key == "value") {
      value = std::move(parsed->entries[0].value);
    } else {
      value.kind = RawValue::Kind::text;
      value.text = text;
    }
  } else {
    value.kind = RawValue::Kind::text;
    value.text = text;
  }
  value.where = where;
  for (RawValue& item : value.items) {
    item.where = where;
  }
  return value;
}

}  // namespace piper

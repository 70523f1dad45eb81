#include "core/plugin/manifest.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/config/raw.h"
#include "core/config/spelling.h"
#include "core/plugin/options.h"
#include "core/plugin/text.h"

namespace piper {
namespace {

using Kind = RawValue::Kind;

// Collects mistakes, so that an author sees all of them at once.
class Reader {
 public:
  Manifest read(const RawValue& root);
  Diagnostics take_errors() { return std::move(errors_); }

 private:
  void refuse(const char* code, std::string message, const Location& where) {
    errors_.push_back(error(code, std::move(message), where));
  }
  void check_keys(const RawValue& table, const std::string& what,
                  const std::vector<std::string>& known);
  // The text under `key`, or "" (reported, where `required`).
  std::string text(const RawValue& table, const std::string& what, std::string_view key,
                   bool required);
  std::vector<std::string> texts(const RawValue& table, std::string_view key);
  std::vector<Capability> capabilities(const RawValue& root, std::string_view key);
  std::optional<Capability> capability(const std::string& what, const RawValue& item);
  void read_abi(const RawValue& root, Manifest& manifest);
  std::optional<OptionSpec> option(const RawValue& table);
  void read_type(const RawValue& table, OptionSpec& spec);
  void read_values(const RawValue& table, const std::string& what, OptionSpec& spec);
  bool flag(const RawValue& table, std::string_view key);
  std::optional<OptionValue> bound(const RawValue& table, const std::string& what,
                                   const OptionSpec& spec, std::string_view key);

  Diagnostics errors_;
};

constexpr std::array<std::pair<std::string_view, OptionType>, 5> kTypes{
    {{"bool", OptionType::boolean},
     {"i64", OptionType::i64},
     {"f64", OptionType::f64},
     {"str", OptionType::string},
     {"enum", OptionType::enumeration}}};

std::string quoted(const std::string& text) {
  return "'" + text + "'";
}

OptionValue to_option(const RawValue& raw) {
  OptionValue value;
  value.where = raw.where;
  switch (raw.kind) {
    case Kind::boolean:
      value.value = raw.boolean;
      break;
    case Kind::integer:
      value.value = raw.integer;
      break;
    case Kind::number:
      value.value = raw.number;
      break;
    case Kind::text:
      value.value = raw.text;
      break;
    case Kind::date:
    case Kind::list:
    case Kind::table: {
      std::vector<OptionValue> items;
      for (const RawValue& item : raw.items) {
        items.push_back(to_option(item));
      }
      value.value = std::move(items);
    }
  }
  return value;
}

void Reader::check_keys(const RawValue& table, const std::string& what,
                        const std::vector<std::string>& known) {
  for (const RawEntry& entry : table.entries) {
    if (std::find(known.begin(), known.end(), entry.key) == known.end()) {
      refuse("manifest.unknown_key",
             what + " has no key " + quoted(entry.key) + suggest(entry.key, known), entry.where);
    }
  }
}

std::string Reader::text(const RawValue& table, const std::string& what, std::string_view key,
                         bool required) {
  const RawValue* value = table.find(key);
  if (value == nullptr) {
    if (required) {
      refuse("manifest.missing_key", what + " lacks the key " + quoted(std::string(key)),
             table.where);
    }
    return "";
  }
  if (value->kind != Kind::text || (required && value->text.empty())) {
    refuse("manifest.type", std::string(key) + ": expected a text, got " + describe(*value),
           value->where);
    return "";
  }
  return value->text;
}

std::vector<std::string> Reader::texts(const RawValue& table, std::string_view key) {
  std::vector<std::string> items;
  const RawValue* value = table.find(key);
  if (value == nullptr) {
    return items;
  }
  if (value->kind != Kind::list) {
    refuse("manifest.type",
           std::string(key) + ": expected a list of texts, got " + describe(*value), value->where);
    return items;
  }
  for (const RawValue& item : value->items) {
    if (item.kind != Kind::text || item.text.empty()) {
      refuse("manifest.type", std::string(key) + ": expected a text, got " + describe(item),
             item.where);
    } else {
      items.push_back(item.text);
    }
  }
  return items;
}

std::optional<Capability> Reader::capability(const std::string& what, const RawValue& item) {
  Capability result;
  result.where = item.where;
  std::string expression;
  if (item.kind == Kind::text) {
    expression = item.text;
  } else if (item.kind == Kind::table) {
    check_keys(item, what, {"id", "reason"});
    expression = text(item, what, "id", true);
    result.reason = text(item, what, "reason", false);
  } else {
    refuse("manifest.type", what + ": expected a text or a table, got " + describe(item),
           item.where);
    return std::nullopt;
  }
  const std::size_t end = expression.find_first_of(" <>=");
  result.id = expression.substr(0, end);
  if (end != std::string::npos) {
    const std::size_t comparison = expression.find_first_not_of(' ', end);
    const std::size_t version = expression.find_first_of("0123456789", end);
    if (comparison == std::string::npos || version == std::string::npos) {
      result.comparison = "?";
    } else {
      result.comparison = expression.substr(comparison, version - comparison);
      result.comparison.erase(result.comparison.find_last_not_of(' ') + 1);
      result.version = expression.substr(version);
    }
  }
  constexpr std::array<std::string_view, 6> comparisons{"", "<", "<=", "==", ">=", ">"};
  const bool known =
      std::find(comparisons.begin(), comparisons.end(), result.comparison) != comparisons.end();
  if (!is_identifier(result.id) || !known ||
      (!result.comparison.empty() && !parse_version(result.version))) {
    refuse("manifest.capability",
           what + ": expected an id, as in 'zero' or 'zero >= 1.2', got " + quoted(expression),
           item.where);
    return std::nullopt;
  }
  return result;
}

std::vector<Capability> Reader::capabilities(const RawValue& root, std::string_view key) {
  std::vector<Capability> result;
  const RawValue* value = root.find(key);
  if (value != nullptr && value->kind != Kind::list) {
    refuse("manifest.type", std::string(key) + ": expected a list, got " + describe(*value),
           value->where);
  } else if (value != nullptr) {
    for (const RawValue& item : value->items) {
      if (auto one = capability(std::string(key), item)) {
        result.push_back(std::move(*one));
      }
    }
  }
  return result;
}

void Reader::read_abi(const RawValue& root, Manifest& manifest) {
  const std::string abi = text(root, "the manifest", "abi", true);
  if (abi.empty()) {
    return;
  }
  const auto version = parse_version(abi);
  if (!version || (*version)[2] != 0) {
    refuse("manifest.version", "abi: expected a version, as in '0.1', got " + quoted(abi),
           root.find("abi")->where);
    return;
  }
  manifest.abi_major = (*version)[0];
  manifest.abi_minor = (*version)[1];
}

void Reader::read_type(const RawValue& table, OptionSpec& spec) {
  const std::string written = text(table, "option " + quoted(spec.name), "type", true);
  constexpr std::string_view prefix = "list of ";
  spec.list = written.starts_with(prefix);
  const std::string_view item = std::string_view(written).substr(spec.list ? prefix.size() : 0);
  for (const auto& [name, type] : kTypes) {
    if (name == item) {
      spec.type = type;
      return;
    }
  }
  if (!written.empty()) {
    refuse(
        "manifest.type",
        "type: expected bool, i64, f64, str, enum or a list of one of them, got " + quoted(written),
        table.find("type")->where);
  }
}

bool Reader::flag(const RawValue& table, std::string_view key) {
  const RawValue* value = table.find(key);
  if (value != nullptr && value->kind != Kind::boolean) {
    refuse("manifest.type", std::string(key) + ": expected true or false, got " + describe(*value),
           value->where);
  }
  return value != nullptr && value->boolean;
}

std::optional<OptionValue> Reader::bound(const RawValue& table, const std::string& what,
                                         const OptionSpec& spec, std::string_view key) {
  const RawValue* value = table.find(key);
  if (value == nullptr) {
    return std::nullopt;
  }
  const bool number =
      value->kind == Kind::integer || (value->kind == Kind::number && spec.type == OptionType::f64);
  if (!number || (spec.type != OptionType::i64 && spec.type != OptionType::f64)) {
    refuse("manifest.bound",
           what + ": " + std::string(key) + " does not fit the type " +
               std::string(to_string(spec.type)),
           value->where);
    return std::nullopt;
  }
  OptionValue limit = to_option(*value);
  if (spec.type == OptionType::f64 && value->kind == Kind::integer) {
    limit.value = static_cast<double>(value->integer);
  }
  return limit;
}

void Reader::read_values(const RawValue& table, const std::string& what, OptionSpec& spec) {
  spec.values = texts(table, "values");
  if ((spec.type == OptionType::enumeration) == spec.values.empty()) {
    refuse("manifest.values", what + ": expected 'values' for the type enum, and for no other",
           table.where);
  }
  const RawValue* spellings = table.find("spellings");
  if (spellings != nullptr && spellings->kind != Kind::table) {
    refuse("manifest.type", "spellings: expected a table, got " + describe(*spellings),
           spellings->where);
    return;
  }
  for (const RawEntry& entry :
       spellings == nullptr ? std::vector<RawEntry>() : spellings->entries) {
    const std::string value = entry.value.kind == Kind::text ? entry.value.text : "";
    if (std::find(spec.values.begin(), spec.values.end(), value) == spec.values.end()) {
      refuse("manifest.values",
             what + ": expected one of its values for the spelling " + quoted(entry.key) +
                 ", got " + describe(entry.value),
             entry.value.where);
    } else if (!known_spelling(entry.key, spec.values).empty()) {
      refuse("manifest.values",
             what + ": the spelling " + quoted(entry.key) + " is that of a value already",
             entry.where);
    } else {
      spec.spellings.emplace_back(entry.key, value);
    }
  }
}

std::optional<OptionSpec> Reader::option(const RawValue& table) {
  OptionSpec spec;
  spec.name = text(table, "an option", "name", true);
  if (!is_identifier(spec.name) || spec.name == "plugin" || spec.name == "name") {
    if (!spec.name.empty()) {
      refuse("manifest.name",
             "expected an option's name of the form [a-z][a-z0-9_]* other than 'plugin' and "
             "'name', got " +
                 quoted(spec.name),
             table.find("name")->where);
    }
    return std::nullopt;
  }
  const std::string what = "option " + quoted(spec.name);
  const std::size_t before = errors_.size();
  check_keys(table, what,
             {"name", "type", "default", "min", "max", "values", "spellings", "unit", "help",
              "required", "saves_memory"});
  read_type(table, spec);
  spec.help = text(table, what, "help", true);
  spec.unit = text(table, what, "unit", false);
  read_values(table, what, spec);
  spec.min = bound(table, what, spec, "min");
  spec.max = bound(table, what, spec, "max");
  spec.required = flag(table, "required");
  spec.saves_memory = flag(table, "saves_memory");
  if (spec.saves_memory && (spec.type != OptionType::i64 || spec.list || !spec.min || !spec.max)) {
    refuse("manifest.values", what + ": saves_memory needs the type i64, a min and a max",
           table.find("saves_memory")->where);
  }
  if (const RawValue* fallback = table.find("default")) {
    spec.fallback = to_option(*fallback);
    if (spec.required) {
      refuse("manifest.default", what + ": expected no default, because it is required",
             fallback->where);
    }
    if (errors_.size() == before) {  // else the type is not known
      for (Diagnostic& mistake : check_option(spec, "default of " + what, *spec.fallback)) {
        mistake.code = "manifest.default";
        errors_.push_back(std::move(mistake));
      }
    }
  }
  return spec;
}

Manifest Reader::read(const RawValue& root) {
  Manifest manifest;
  check_keys(
      root, "a manifest",
      {"id", "version", "abi", "summary", "option", "provides", "requires", "conflicts", "axes"});
  manifest.id = text(root, "the manifest", "id", true);
  if (!manifest.id.empty() && !is_identifier(manifest.id)) {
    refuse("manifest.id", "id: expected the form [a-z][a-z0-9_]*, got " + quoted(manifest.id),
           root.find("id")->where);
  }
  manifest.version = text(root, "the manifest", "version", true);
  if (!manifest.version.empty() && !parse_version(manifest.version)) {
    refuse("manifest.version",
           "version: expected major.minor.patch, got " + quoted(manifest.version),
           root.find("version")->where);
  }
  read_abi(root, manifest);
  manifest.summary = text(root, "the manifest", "summary", true);
  manifest.provides = capabilities(root, "provides");
  manifest.requirements = capabilities(root, "requires");
  manifest.conflicts = capabilities(root, "conflicts");
  manifest.axes = texts(root, "axes");
  const RawValue* options = root.find("option");
  if (options != nullptr && !options->is_tables()) {
    refuse("manifest.type", "option: expected [[option]] tables, got " + describe(*options),
           options->where);
  } else if (options != nullptr) {
    for (const RawValue& table : options->items) {
      std::optional<OptionSpec> spec = option(table);
      if (spec && manifest.option(spec->name) != nullptr) {
        refuse("manifest.name", "option " + quoted(spec->name) + " is there twice", table.where);
      } else if (spec) {
        manifest.options.push_back(std::move(*spec));
      }
    }
  }
  return manifest;
}

}  // namespace

std::string_view to_string(OptionType type) {
  for (const auto& [name, candidate] : kTypes) {
    if (candidate == type) {
      return name;
    }
  }
  return "?";
}

std::string OptionSpec::value_of(std::string_view text) const {
  std::string value = known_spelling(text, values);
  for (const auto& [other, meant] : spellings) {
    if (value.empty() && !known_spelling(text, {other}).empty()) {
      value = meant;
    }
  }
  return value;
}

const OptionSpec* Manifest::option(std::string_view name) const {
  const auto found = std::find_if(options.begin(), options.end(),
                                  [&](const OptionSpec& spec) { return spec.name == name; });
  return found == options.end() ? nullptr : &*found;
}

bool accepts(const Capability& wanted, std::string_view version) {
  const auto limit = parse_version(wanted.version);
  const auto got = parse_version(version);
  if (wanted.comparison.empty() || !limit || !got) {
    return wanted.comparison.empty();
  }
  const auto order = *got <=> *limit;
  return (order < 0 && wanted.comparison[0] == '<') || (order > 0 && wanted.comparison[0] == '>') ||
         (order == 0 && wanted.comparison.back() == '=');
}

std::string to_string(const Capability& wanted) {
  return wanted.id +
         (wanted.comparison.empty() ? "" : " " + wanted.comparison + " " + wanted.version);
}

Expected<Manifest> parse_manifest(std::string_view text, const std::string& source) {
  Expected<RawValue> root = parse_raw(text, source);
  if (!root) {
    for (Diagnostic& mistake : root.error()) {
      mistake.code = "manifest." + mistake.code.substr(mistake.code.find('.') + 1);
    }
    return fail(std::move(root.error()));
  }
  Reader reader;
  Manifest manifest = reader.read(*root);
  if (Diagnostics errors = reader.take_errors(); !errors.empty()) {
    return fail(std::move(errors));
  }
  return manifest;
}

}  // namespace piper

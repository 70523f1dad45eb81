#include <algorithm>

#include "core/config/load.h"
#include "core/config/schema.h"

namespace piper {
namespace {

using Kind = RawValue::Kind;

// Texts need no quotes on a command line; what a plugin or a user's model declares is read as TOML
// where it is TOML.
RawValue read_value(const std::string& section, const std::string& name, const std::string& text,
                    const Location& where) {
  const Key* key = find_key(section, name);
  const bool plain = key != nullptr && key->supported &&
                     (key->type == Key::Type::text || key->type == Key::Type::texts ||
                      key->type == Key::Type::choice);
  const bool quoted = text.starts_with('"') || text.starts_with('\'') ||
                      (text.starts_with('[') && key != nullptr && key->type == Key::Type::texts);
  if (!plain || quoted) {
    return parse_raw_value(text, where);
  }
  RawValue value;
  value.kind = Kind::text;
  value.text = text;
  value.where = where;
  return value;
}

void set(RawValue& table, const std::string& name, RawValue value) {
  if (RawValue* old = table.find(name)) {
    *old = std::move(value);
    return;
  }
  const Location where = value.where;
  table.entries.push_back({name, where, std::move(value)});
}

std::string text_of(const RawValue& table, std::string_view key) {
  const RawValue* value = table.find(key);
  return value == nullptr ? "" : value->text;
}

// The [[strategy]] of that name or, where none has it, of that plugin.
RawValue* find_strategy(RawValue& job, const std::string& name, const Location& where,
                        Diagnostics& errors) {
  RawValue* strategies = job.find("strategy");
  std::vector<RawValue*> by_name;
  std::vector<RawValue*> by_plugin;
  std::vector<std::string> known;
  if (strategies != nullptr && strategies->is_tables()) {
    for (RawValue& table : strategies->items) {
      const std::string plugin = text_of(table, "plugin");
      const std::string own = text_of(table, "name");
      if (own == name) {
        by_name.push_back(&table);
      } else if (plugin == name) {
        by_plugin.push_back(&table);
      }
      const std::string& shown = own.empty() ? plugin : own;
      if (std::find(known.begin(), known.end(), shown) == known.end()) {
        known.push_back(shown);
      }
    }
  }
  const auto& found = by_name.empty() ? by_plugin : by_name;
  if (found.size() == 1) {
    return found.front();
  }
  if (found.empty()) {
    const std::string hint =
        known.empty() ? " (the job has no [[strategy]])" : suggest(name, known);
    errors.push_back(
        error("config.unknown_strategy", "unknown strategy '" + name + "'" + hint, where));
    return nullptr;
  }
  Diagnostic ambiguous = error("config.ambiguous_override",
                               "expected one [[strategy]] '" + name + "', got " +
                                   std::to_string(found.size()) + "; give them a name each",
                               where);
  for (const RawValue* table : found) {
    ambiguous.note("this is one", table->where);
  }
  errors.push_back(std::move(ambiguous));
  return nullptr;
}

void apply_override(RawValue& job, const std::string& text, Diagnostics& errors) {
  const Location where{"--" + text};
  const std::size_t equals = text.find('=');
  const std::string path = text.substr(0, equals);
  const std::size_t first = path.find('.');
  const std::size_t last = path.rfind('.');
  const std::string section = path.substr(0, first);
  const std::string name = last == std::string::npos ? "" : path.substr(last + 1);
  const bool strategy = section == "strategy";
  const bool complete = equals != std::string::npos && !section.empty() && !name.empty();
  if (!complete || (first == last) == strategy) {
    const std::string form = strategy ? "--strategy.name.key=value" : "--section.key=value";
    errors.push_back(error("config.override", "expected " + form + ", got --" + text, where));
    return;
  }
  RawValue value = read_value(section, name, text.substr(equals + 1), where);
  if (strategy) {
    const std::string which = path.substr(first + 1, last - first - 1);
    if (RawValue* table = find_strategy(job, which, where, errors)) {
      set(*table, name, std::move(value));
    }
    return;
  }
  if (section == "directive" || (section == "optimizer" && name == "group")) {
    errors.push_back(error("config.override",
                           "expected " +
                               std::string(section == "directive" ? section : "optimizer.group") +
                               " in the job file, got it as an override",
                           where));
    return;
  }
  if (job.find(section) == nullptr) {
    RawValue table;
    table.where = where;
    set(job, section, std::move(table));
  }
  RawValue* table = job.find(section);
  if (table->kind == Kind::table) {
    set(*table, name, std::move(value));
  }
}

}  // namespace

void apply_overrides(RawValue& job, const std::vector<std::string>& overrides,
                     Diagnostics& errors) {
  for (const std::string& text : overrides) {
    apply_override(job, text, errors);
  }
}

}  // namespace piper

#include "core/directives/toml/keys.h"

#include <algorithm>
#include <utility>

#include "core/directives/directive.h"

namespace piper {
namespace {

using Form = DirectiveKey::Form;

std::string form_text(const DirectiveKey& key) {
  switch (key.form) {
    case Form::plain:
      return expectation(key.scalar);
    case Form::filter:
      return "a filter";
    case Form::indices:
      return "a list of indices";
    case Form::ranks:
      return "ranks or coordinates";
    case Form::family:
      return "groups of ranks or axes";
    case Form::groups:
      return "groups of filters";
    case Form::actions:
      return "actions";
    case Form::bytes:
      return "a size";
  }
  return "?";
}

}  // namespace

DirectiveKey key_of(std::string_view name, Form form, std::string_view help) {
  const bool required = name.ends_with('!');
  DirectiveKey key;
  key.name = name.substr(0, name.size() - (required ? 1 : 0));
  key.form = form;
  key.required = required;
  key.scalar.section = "directive";
  key.scalar.name = key.name;
  key.scalar.help = help;
  return key;
}

DirectiveKey plain_key(std::string_view name, Key::Type type, std::string_view help,
                       Bounds bounds) {
  DirectiveKey key = key_of(name, Form::plain, help);
  key.scalar.type = type;
  key.scalar.bounds = bounds;
  return key;
}

DirectiveKey choice_key(std::string_view name, std::vector<std::string> choices,
                        std::string_view help) {
  DirectiveKey key = plain_key(name, Key::Type::choice, help);
  key.scalar.choices = std::move(choices);
  return key;
}

DirectiveKey filter_key(std::string_view name) {
  return key_of(name, Form::filter, "the chunks that it is about");
}

DirectiveKey family_key(std::string_view name) {
  return key_of(
      name, Form::family,
      "groups of ranks: lists of ranks, or the mesh axes along which they lie; not given: "
      "each place is one group");
}

const std::vector<std::string>& directive_ops() {
  static const std::vector<std::string> ops = [] {
    std::vector<std::string> names;
    for (const DirectiveKind* kind : kinds_by_phase()) {
      if (kind->read != nullptr) {
        names.emplace_back(kind->op);
      }
    }
    return names;
  }();
  return ops;
}

const std::vector<DirectiveKey>& directive_keys(std::string_view op) {
  static const std::vector<DirectiveKey> none;
  const auto all = directive_kinds();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const DirectiveKind* kind) { return kind->op == op; });
  return found == all.end() ? none : (*found)->keys;
}

const DirectiveKey* find_directive_key(std::string_view op, std::string_view name) {
  for (const DirectiveKey& key : directive_keys(op)) {
    if (key.name == name) {
      return &key;
    }
  }
  return nullptr;
}

std::vector<std::string> directive_key_names(std::string_view op) {
  std::vector<std::string> names;
  for (const DirectiveKey& key : directive_keys(op)) {
    names.push_back(key.name);
  }
  return names;
}

std::string directive_reference() {
  std::string text = "| op | key | value | meaning |\n| --- | --- | --- | --- |\n";
  for (const std::string& op : directive_ops()) {
    for (const DirectiveKey& key : directive_keys(op)) {
      text += "| `" + op + "` | `" + key.name + "`" + (key.required ? " (required)" : "") + " | " +
              form_text(key) + " | " + key.scalar.help + " |\n";
    }
  }
  return text;
}

}  // namespace piper

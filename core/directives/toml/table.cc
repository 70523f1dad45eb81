#include "core/directives/toml/table.h"

#include <algorithm>
#include <optional>

#include "core/base/bytes.h"
#include "core/config/spelling.h"
#include "core/directives/directive.h"

namespace piper {

bool DirectiveTable::read(Directive& into) {
  const std::size_t before = mistakes_.size();
  if (!read_op()) {
    return false;
  }
  check_keys();
  if (mistakes_.size() > before) {
    return false;
  }
  for (const DirectiveKind* kind : directive_kinds()) {
    if (kind->op == op_) {
      kind->read(*this, into);
    }
  }
  return mistakes_.size() == before;
}

bool DirectiveTable::read_op() {
  const RawValue* op = raw_.find("op");
  if (op == nullptr) {
    refuse("config.missing_key", "[[directive]]: expected the key 'op', got none", raw_.where);
    return false;
  }
  const std::vector<std::string>& known = directive_ops();
  if (op->kind != RawValue::Kind::text ||
      std::find(known.begin(), known.end(), op->text) == known.end()) {
    refuse("config.choice",
           "directive.op: expected a directive, got " + describe(*op) + suggest(op->text, known),
           op->where);
    return false;
  }
  op_ = op->text;
  return true;
}

void DirectiveTable::check_keys() {
  for (const RawEntry& entry : raw_.entries) {
    if (entry.key == "op") {
      continue;
    }
    const DirectiveKey* key = find_directive_key(op_, entry.key);
    if (key == nullptr) {
      refuse("config.unknown_key",
             "unknown key '" + entry.key + "' in [[directive]] " + op_ +
                 suggest(entry.key, directive_key_names(op_)),
             entry.where);
    } else if (key->form == DirectiveKey::Form::plain) {
      if (auto wrong = check(key->scalar, path(entry.key), entry.value)) {
        mistakes_.push_back(*std::move(wrong));
      }
    }
  }
  for (const DirectiveKey& key : directive_keys(op_)) {
    if (key.required && !has(key.name)) {
      missing("the key '" + key.name + "'", "none");
    }
  }
}

std::string DirectiveTable::text(const std::string& key, std::string otherwise) const {
  const RawValue* value = raw_.find(key);
  if (value == nullptr) {
    return otherwise;
  }
  const DirectiveKey* known = find_directive_key(op_, key);
  return known != nullptr && known->scalar.type == Key::Type::choice
             ? known_spelling(value->text, known->scalar.choices)
             : value->text;
}

std::uint32_t DirectiveTable::number(const std::string& key, std::uint32_t otherwise) const {
  const RawValue* value = raw_.find(key);
  return value == nullptr ? otherwise : static_cast<std::uint32_t>(value->integer);
}

bool DirectiveTable::flag(const std::string& key) const {
  const RawValue* value = raw_.find(key);
  return value != nullptr && value->boolean;
}

std::uint64_t DirectiveTable::bytes(const std::string& key) {
  const RawValue* value = raw_.find(key);
  if (value == nullptr) {
    return 0;
  }
  const auto size = value->kind == RawValue::Kind::integer && value->integer > 0
                        ? std::optional(value->integer)
                    : value->kind == RawValue::Kind::text ? parse_bytes(value->text)
                                                          : std::nullopt;
  if (!size) {
    refuse("config.type",
           path(key) + ": expected a number of bytes above 0, or a text like \"25MiB\", got " +
               describe(*value),
           value->where);
  }
  return static_cast<std::uint64_t>(size.value_or(0));
}

Ranks DirectiveTable::ranks() {
  return compound<Ranks>("ranks", [this](const RawValue& value, const std::string& path) {
    return read_ranks(value, path, mesh_);
  });
}

Family DirectiveTable::family() {
  return compound<Family>("family", [this](const RawValue& value, const std::string& path) {
    return read_family(value, path, mesh_);
  });
}

void DirectiveTable::missing(const std::string& expected, const std::string& got) {
  refuse("config.missing_key", "[[directive]] " + op_ + ": expected " + expected + ", got " + got,
         raw_.where);
}

void DirectiveTable::refuse(std::string code, std::string message, const Location& where) {
  mistakes_.push_back(error(std::move(code), std::move(message), where));
}

}  // namespace piper

// The keys of [[directive]] tables, in one place: what each op takes, its type, range and help. The
// reader and the table in docs/directives.md both come from it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/schema.h"

namespace piper {

struct DirectiveKey {
  // How a value is read. `plain`: as `scalar` says.
  enum class Form : std::uint8_t { plain, filter, indices, ranks, family, groups, actions, bytes };

  std::string op, name;
  Form form = Form::plain;
  bool required = false;
  Key scalar;  // of a plain one, and its help
};

std::span<const DirectiveKey> directive_keys();
const DirectiveKey* find_directive_key(std::string_view op, std::string_view name);

// In the order of their phases.
const std::vector<std::string>& directive_ops();
std::vector<std::string> directive_key_names(std::string_view op);

// The table of keys in docs/directives.md, as Markdown.
std::string directive_reference();

}  // namespace piper

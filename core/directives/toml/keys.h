// The keys of [[directive]] tables: how a directive's descriptor says its own, and all of them. The
// reader and the table in docs/directives.md both come from it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/config/schema.h"

namespace piper {

struct DirectiveKey {
  // How a value is read. `plain`: as `scalar` says.
  enum class Form : std::uint8_t { plain, filter, indices, ranks, family, groups, actions, bytes };

  std::string name;
  Form form = Form::plain;
  bool required = false;
  Key scalar;  // of a plain one, and its help
};

inline constexpr Bounds kIndex{.low = 0, .high = 4294967294.0};
inline constexpr Bounds kCount{.low = 1, .high = 4294967294.0};

// `!` after a name: the key must be there.
DirectiveKey key_of(std::string_view name, DirectiveKey::Form form, std::string_view help);
DirectiveKey plain_key(std::string_view name, Key::Type type, std::string_view help,
                       Bounds bounds = {});
DirectiveKey choice_key(std::string_view name, std::vector<std::string> choices,
                        std::string_view help);
DirectiveKey filter_key(std::string_view name);  // the chunks that it is about
DirectiveKey family_key(std::string_view name);

// Directives that tables may say, in the order of their phases, and the keys of one.
const std::vector<std::string>& directive_ops();
const std::vector<DirectiveKey>& directive_keys(std::string_view op);
const DirectiveKey* find_directive_key(std::string_view op, std::string_view name);
std::vector<std::string> directive_key_names(std::string_view op);

// The table of keys in docs/directives.md, as Markdown.
std::string directive_reference();

}  // namespace piper

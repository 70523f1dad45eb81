#include "core/directives/directive.h"

#include <algorithm>
#include <utility>

#include "core/directives/annotated.h"
#include "core/directives/toml/keys.h"

namespace piper {
namespace {

using What = decltype(Directive::what);

template <typename... Whats>
std::vector<const DirectiveKind*> kinds(const std::variant<Whats...>*) {
  return {&descriptor<Whats>().kind...};
}

}  // namespace

std::span<const DirectiveKind* const> directive_kinds() {
  static const std::vector<const DirectiveKind*> all = kinds(static_cast<const What*>(nullptr));
  return all;
}

std::vector<const DirectiveKind*> kinds_by_phase() {
  const std::span<const DirectiveKind* const> all = directive_kinds();
  std::vector<const DirectiveKind*> kinds(all.begin(), all.end());
  std::stable_sort(kinds.begin(), kinds.end(),
                   [](const auto* a, const auto* b) { return a->phase < b->phase; });
  return kinds;
}

const DirectiveKind& kind_of(const Directive& directive) {
  return *directive_kinds()[directive.what.index()];
}

std::string what_text(const Directive& directive) {
  return std::visit([]<typename What>(const What& what) { return descriptor<What>().text(what); },
                    directive.what);
}

std::string to_string(const Directive& directive) {
  std::string text = what_text(directive);
  text += "   # " + directive.from.plugin;
  if (directive.from.where.known()) {
    text += ", " + to_string(directive.from.where);
  }
  return text;
}

Expected<Annotated> apply(Annotated dag, const Directive& directive, std::uint32_t origin) {
  return std::visit(
      [&]<typename What>(const What& what) {
        return descriptor<What>().apply(std::move(dag), what, directive.from, origin);
      },
      directive.what);
}

void claim(const Directive& directive, Claims& claims) {
  std::visit(
      [&]<typename What>(const What& what) {
        if (descriptor<What>().claim != nullptr) {
          descriptor<What>().claim(what, directive.from, claims);
        }
      },
      directive.what);
}

}  // namespace piper

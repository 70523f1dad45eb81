#include "core/directives/sequence.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

namespace piper {
namespace {

struct Declared {
  Provenance from;
  std::vector<const Directive*> directives;
  // Only compared where two units are of one strategy and name: a large proposal is not printed.
  std::string text() const {
    std::string all;
    for (const Directive* directive : directives) {
      all += what_text(*directive) + '\n';
    }
    return all;
  }
};

bool before(const Declared& a, const Declared& b) {
  const auto who = [](const Declared& unit) { return std::tie(unit.from.plugin, unit.from.name); };
  return who(a) != who(b) ? who(a) < who(b) : a.text() < b.text();
}

std::vector<Declared> declared_in(const std::vector<Proposal>& proposals) {
  std::vector<Declared> units;
  for (const Proposal& proposal : proposals) {
    if (!proposal.unordered) {
      units.push_back({proposal.from, {}});
    }
    for (const Directive& directive : proposal.directives) {
      if (proposal.unordered) {
        units.push_back({directive.from, {}});
      }
      units.back().directives.push_back(&directive);
    }
  }
  std::stable_sort(units.begin(), units.end(), before);
  return units;
}

// Which tags the tag directives of a unit give, and which their filters use.
struct TagUse {
  std::vector<std::string> given, used;
};

TagUse tag_use(const Declared& unit) {
  TagUse use;
  for (const Directive* directive : unit.directives) {
    if (const auto* tag = std::get_if<TagDirective>(&directive->what)) {
      use.given.push_back(tag->name);
      for (const Condition& condition : tag->filter.conditions) {
        use.used.push_back(condition.tag);
      }
      if (tag->partition) {
        use.used.push_back(tag->partition->over);
      }
    }
  }
  return use;
}

bool needs(const TagUse& user, const TagUse& giver) {
  return std::any_of(user.used.begin(), user.used.end(), [&](const std::string& name) {
    return std::find(giver.given.begin(), giver.given.end(), name) != giver.given.end();
  });
}

Diagnostic cycle(const std::vector<Declared>& units, const std::vector<std::uint32_t>& left) {
  const Declared& first = units[left[0]];
  Diagnostic mutual =
      error("tag.cycle",
            first.from.plugin +
                ": tag: a filter uses a tag that others give, whose filters use a tag given here",
            first.from.where);
  for (std::size_t i = 1; i < left.size(); ++i) {
    mutual.note("one of the others, of " + units[left[i]].from.plugin, units[left[i]].from.where);
  }
  return mutual;
}

// Numbers of units, so that each tag is given before others use it; otherwise as they are.
Expected<std::vector<std::uint32_t>> tag_order(const std::vector<Declared>& units) {
  std::vector<TagUse> uses;
  std::vector<std::uint32_t> left, order;
  for (std::uint32_t u = 0; u < units.size(); ++u) {
    uses.push_back(tag_use(units[u]));
    if (!uses[u].given.empty()) {
      left.push_back(u);
    }
  }
  while (!left.empty()) {
    const auto ready = std::find_if(left.begin(), left.end(), [&](std::uint32_t u) {
      return std::none_of(left.begin(), left.end(), [&](std::uint32_t other) {
        return other != u && needs(uses[u], uses[other]);
      });
    });
    if (ready == left.end()) {
      return fail(cycle(units, left));
    }
    order.push_back(*ready);
    left.erase(ready);
  }
  return order;
}

}  // namespace

Expected<Sequence> sequence(const std::vector<Proposal>& proposals) {
  const std::vector<Declared> units = declared_in(proposals);
  Sequence result;
  result.origins.push_back({"core", {}});
  for (const Declared& unit : units) {
    result.origins.push_back(unit.from);
  }
  const auto add = [&](std::uint32_t u, auto&& wanted) {
    for (const Directive* directive : units[u].directives) {
      if (wanted(*directive)) {
        result.steps.push_back({directive, u + 1});
      }
    }
  };
  const auto is_tag = [](const Directive& d) { return kind_of(d).phase == DirectivePhase::tag; };
  PIPER_ASSIGN(const std::vector<std::uint32_t> tags, tag_order(units));
  for (const std::uint32_t u : tags) {
    add(u, is_tag);
  }
  const auto others = static_cast<std::ptrdiff_t>(result.steps.size());
  for (std::uint32_t u = 0; u < units.size(); ++u) {
    add(u, [&](const Directive& d) { return !is_tag(d); });
  }
  std::stable_sort(result.steps.begin() + others, result.steps.end(),
                   [](const auto& a, const auto& b) {
                     return kind_of(*a.directive).phase < kind_of(*b.directive).phase;
                   });
  return result;
}

}  // namespace piper

#include "core/directives/directive.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <type_traits>

namespace piper {
namespace {

std::string_view name(Pass pass) {
  constexpr std::array<std::string_view, 5> names{"F", "B", "BI", "BW", "U"};
  return names[static_cast<std::size_t>(pass)];
}

template <typename T, typename Print>
std::string join(const std::vector<T>& items, Print&& print) {
  std::string text;
  for (const T& item : items) {
    text += (text.empty() ? "" : ", ") + print(item);
  }
  return text;
}

std::string number(std::uint32_t value) {
  return std::to_string(value);
}

std::string to_string(const Condition& condition) {
  switch (condition.kind) {
    case Condition::Kind::equals:
      return condition.tag + "=" + number(condition.values.at(0));
    case Condition::Kind::in_set:
      return condition.tag + "=[" + join(condition.values, number) + "]";
    case Condition::Kind::in_range:
      return condition.tag + "=" + number(condition.values.at(0)) + ".." +
             number(condition.values.at(1));
    case Condition::Kind::present:
      return condition.tag + "=*";
    case Condition::Kind::absent:
      return condition.tag + "=-";
  }
  return condition.tag;
}

std::string ranks_text(const Ranks& ranks) {
  return "ranks=[" + join(ranks.ranks, number) + "]";
}

std::string text_of(const TagDirective& tag) {
  return "tag " + to_string(tag.filter) + " " + tag.name + "=" + number(tag.index);
}
std::string text_of(const SplitDirective& split) {
  return "split " + to_string(split.filter) + " dim=" + split.dim + " n=" + number(split.n);
}
std::string text_of(const SplitBackwardDirective& split) {
  return "split_backward " + to_string(split.filter);
}
std::string text_of(const PlaceDirective& place) {
  return "place " + to_string(place.filter) + " " + ranks_text(place.ranks) +
         " stream=" + place.stream;
}
std::string text_of(const ReplicateDirective& replicate) {
  return "replicate " + to_string(replicate.filter) + " " + ranks_text(replicate.ranks) +
         " reduce_stream=" + replicate.reduce_stream;
}
std::string text_of(const OrderDirective& order) {
  return "order " + join(order.groups, [](const std::vector<Filter>& group) {
           return "[" + join(group, [](const Filter& f) { return to_string(f); }) + "]";
         });
}
std::string text_of(const OrderChainDirective& chain) {
  std::string text = "order_chain " + ranks_text(chain.ranks);
  for (const Action& action : chain.actions) {
    text += " " + number(action.stage) + std::string(name(action.pass)) + number(action.microbatch);
  }
  return text;
}

}  // namespace

bool Condition::holds(bool is_present, std::uint32_t value) const {
  switch (kind) {
    case Kind::equals:
      return is_present && value == values.at(0);
    case Kind::in_set:
      return is_present && std::find(values.begin(), values.end(), value) != values.end();
    case Kind::in_range:
      return is_present && values.at(0) <= value && value <= values.at(1);
    case Kind::present:
      return is_present;
    case Kind::absent:
      return !is_present;
  }
  return false;
}

std::string to_string(const Filter& filter) {
  std::string text =
      join(filter.conditions, [](const Condition& condition) { return to_string(condition); });
  if (!filter.passes.empty()) {
    text += (text.empty() ? "" : ", ") + std::string("PASS=") +
            join(filter.passes, [](Pass pass) { return std::string(name(pass)); });
  }
  return "{" + text + "}";
}

std::string to_string(const Directive& directive) {
  std::string text = std::visit([](const auto& what) { return text_of(what); }, directive.what);
  text += "   # " + directive.from.plugin;
  if (directive.from.where.known()) {
    text += ", " + to_string(directive.from.where);
  }
  return text;
}

}  // namespace piper

#include "core/directives/filter.h"

#include <algorithm>
#include <array>

namespace piper {
namespace {

template <typename T, typename Print>
std::string join(const std::vector<T>& items, Print&& print) {
  std::string text;
  for (const T& item : items) {
    text += (text.empty() ? "" : ", ") + print(item);
  }
  return text;
}

std::string to_string(const Condition& condition) {
  switch (condition.kind) {
    case Condition::Kind::equals:
      return condition.tag + "=" + std::to_string(condition.values.at(0));
    case Condition::Kind::in_set:
      return condition.tag + "=[" + number_list(condition.values) + "]";
    case Condition::Kind::in_range:
      return condition.tag + "=" + std::to_string(condition.values.at(0)) + ".." +
             std::to_string(condition.values.at(1));
    case Condition::Kind::present:
      return condition.tag + "=*";
    case Condition::Kind::absent:
      return condition.tag + "=-";
  }
  return condition.tag;
}

}  // namespace

std::string_view name(Pass pass) {
  constexpr std::array<std::string_view, 5> names{"F", "B", "BI", "BW", "U"};
  return names[static_cast<std::size_t>(pass)];
}

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

std::string to_string(const Ranks& ranks) {
  return "ranks=[" + number_list(ranks.ranks) + "]";
}

std::string to_string(const Family& family) {
  return "family=[" +
         join(family.groups,
              [](const Ranks& group) { return "[" + number_list(group.ranks) + "]"; }) +
         "]";
}

std::string number_list(const std::vector<std::uint32_t>& numbers) {
  return join(numbers, [](std::uint32_t number) { return std::to_string(number); });
}

}  // namespace piper

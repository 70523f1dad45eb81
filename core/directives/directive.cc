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
  if (!tag.partition) {
    return "tag " + to_string(tag.filter) + " " + tag.name + "=" + number(tag.index);
  }
  constexpr std::array<std::string_view, 4> by{"count", "flops", "bytes", "boundaries"};
  const Partition& partition = *tag.partition;
  return "tag " + to_string(tag.filter) + " " + tag.name + "=0.." + number(partition.parts - 1) +
         " over '" + partition.over + "' by " +
         std::string(by[static_cast<std::size_t>(partition.by)]) +
         (partition.by == Partition::By::boundaries
              ? " [" + join(partition.boundaries, number) + "]"
              : "");
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
std::string family_text(const Family& family) {
  return "family=[" +
         join(family.groups,
              [](const Ranks& group) { return "[" + join(group.ranks, number) + "]"; }) +
         "]";
}

std::string_view name(Span span) {
  return span == Span::chain ? "chain" : "step";
}

std::string text_of(const ReplicateDirective& r) {
  std::string text = "replicate " + to_string(r.filter) + " " + family_text(r.family) +
                     " reduce_stream=" + r.reduce_stream;
  if (r.shard_optimizer) {
    text += " gather_stream=" + r.gather_stream + " shard=optimizer";
    text += r.shard_grads ? "+grads" : "";
    text += r.shard_params ? "+params" : "";
    text += " prefetch=" + number(r.prefetch) +
            " keep_gathered=" + std::string(name(r.keep_gathered)) +
            " reduce=" + std::string(name(r.reduce));
  }
  return text + (r.bucket_bytes > 0 ? " bucket_bytes=" + std::to_string(r.bucket_bytes) : "");
}
std::string text_of(const ShardDirective& shard) {
  return "shard " + to_string(shard.filter) + " " + family_text(shard.family) +
         " stream=" + shard.stream;
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
    text += action.overlap > 0 ? "&" + number(action.overlap) : "";
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

std::string what_text(const Directive& directive) {
  return std::visit([](const auto& what) { return text_of(what); }, directive.what);
}

std::string to_string(const Directive& directive) {
  std::string text = what_text(directive);
  text += "   # " + directive.from.plugin;
  if (directive.from.where.known()) {
    text += ", " + to_string(directive.from.where);
  }
  return text;
}

}  // namespace piper

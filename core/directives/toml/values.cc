#include "core/directives/toml/values.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "core/directives/annotated.h"

namespace piper {
namespace {

using Kind = RawValue::Kind;

constexpr std::int64_t kMostIndex = 4294967294;

Diagnostic wrong(const std::string& path, const std::string& expected, const RawValue& got) {
  return error("config.type", path + ": expected " + expected + ", got " + describe(got),
               got.where);
}

std::optional<std::uint32_t> to_index(const RawValue& value) {
  if (value.kind != Kind::integer || value.integer < 0 || value.integer > kMostIndex) {
    return std::nullopt;
  }
  return static_cast<std::uint32_t>(value.integer);
}

std::optional<std::uint32_t> to_index(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = failed == std::errc() && end == text.data() + text.size();
  return whole && value <= kMostIndex ? std::optional(value) : std::nullopt;
}

// `0..3`
std::optional<Condition> to_range(const std::string& tag, std::string_view text) {
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos) {
    return std::nullopt;
  }
  const auto first = to_index(text.substr(0, dots));
  const auto last = to_index(text.substr(dots + 2));
  if (!first || !last || *first > *last) {
    return std::nullopt;
  }
  return Condition{tag, Condition::Kind::in_range, {*first, *last}};
}

Expected<Condition> read_condition(const std::string& tag, const RawValue& value,
                                   const std::string& path) {
  if (const auto one = to_index(value)) {
    return Condition{tag, Condition::Kind::equals, {*one}};
  }
  if (value.kind == Kind::text && value.text == "*") {
    return Condition{tag, Condition::Kind::present, {}};
  }
  if (value.kind == Kind::text && value.text == "-") {
    return Condition{tag, Condition::Kind::absent, {}};
  }
  if (value.kind == Kind::text) {
    if (auto range = to_range(tag, value.text)) {
      return *std::move(range);
    }
  }
  if (value.kind == Kind::list && !value.items.empty()) {
    PIPER_ASSIGN(std::vector<std::uint32_t> set, read_indices(value, path));
    return Condition{tag, Condition::Kind::in_set, std::move(set)};
  }
  return fail(wrong(
      path, R"(an index, a list of indices, a range like "0..3", "*" (present) or "-" (absent))",
      value));
}

Expected<Pass> read_pass(const RawValue& value, const std::string& path) {
  const std::vector<std::string> names{"F", "B", "BI", "BW", "U"};
  const auto found = std::find(names.begin(), names.end(), value.text);
  if (value.kind != Kind::text || found == names.end()) {
    return fail(
        error("config.choice",
              path + R"(: expected one of "F", "B", "BI", "BW", "U", got )" + describe(value),
              value.where));
  }
  return static_cast<Pass>(found - names.begin());
}

// Adds key and place to what the mesh has against coordinates or axes.
Diagnostics at(Diagnostics diagnostics, const std::string& path, const Location& where) {
  for (Diagnostic& diagnostic : diagnostics) {
    diagnostic.message = path + ": " + diagnostic.message;
    diagnostic.where = where;
  }
  return diagnostics;
}

bool all_of_kind(const RawValue& value, Kind kind) {
  return value.kind == Kind::list && !value.items.empty() &&
         std::all_of(value.items.begin(), value.items.end(),
                     [&](const RawValue& item) { return item.kind == kind; });
}

Expected<Ranks> read_coordinates(const RawValue& value, const std::string& path,
                                 const MeshRanks& mesh) {
  std::vector<std::pair<std::string, std::uint64_t>> coordinates;
  for (const RawEntry& entry : value.entries) {
    const auto index = to_index(entry.value);
    if (!index) {
      return fail(wrong(path + '.' + entry.key, "a coordinate", entry.value));
    }
    coordinates.emplace_back(entry.key, *index);
  }
  auto ranks = mesh.at(coordinates);
  return ranks ? std::move(ranks) : fail(at(std::move(ranks.error()), path, value.where));
}

// Reads actions one after the other from a text.
class Notation {
 public:
  Notation(std::string_view text, std::uint32_t& overlap, std::vector<Action>& actions)
      : text_(text), overlap_(overlap), actions_(actions) {}

  // The token that is none, or nothing.
  std::optional<std::string> run() {
    while (skip_space(), !text_.empty()) {
      const std::string_view token = text_.substr(0, text_.find_first_of(" \t\r\n"));
      const bool good = token.front() == '(' ? pair(token) : single(token, 0);
      if (!good) {
        return std::string(token);
      }
      text_.remove_prefix(token.size());
    }
    return std::nullopt;
  }

 private:
  void skip_space() {
    text_.remove_prefix(std::min(text_.find_first_not_of(" \t\r\n"), text_.size()));
  }

  // `0F3`
  bool single(std::string_view token, std::uint32_t overlap) {
    const std::size_t letters = token.find_first_not_of("0123456789");
    if (letters == std::string_view::npos) {
      return false;
    }
    const std::size_t digits = std::min(token.find_first_of("0123456789", letters), token.size());
    const auto stage = to_index(token.substr(0, letters));
    const auto microbatch = to_index(token.substr(digits));
    const auto pass = to_pass(token.substr(letters, digits - letters));
    if (!stage || !microbatch || !pass) {
      return false;
    }
    actions_.push_back({*stage, *microbatch, *pass, overlap});
    return true;
  }

  // `(0F3;3B1)` or `(0F3;3B1)OVERLAP_F_B`
  bool pair(std::string_view token) {
    const std::size_t end = token.find(')');
    if (end == std::string_view::npos ||
        (end + 1 != token.size() && token.substr(end + 1) != "OVERLAP_F_B")) {
      return false;
    }
    ++overlap_;
    std::string_view members = token.substr(1, end - 1);
    for (std::size_t next = 0; next != std::string_view::npos;) {
      next = members.find(';');
      if (!single(members.substr(0, next), overlap_)) {
        return false;
      }
      members.remove_prefix(next == std::string_view::npos ? 0 : next + 1);
    }
    return true;
  }

  static std::optional<Pass> to_pass(std::string_view text) {
    return text == "F"                   ? std::optional(Pass::forward)
           : text == "B"                 ? std::optional(Pass::backward)
           : text == "I" || text == "BI" ? std::optional(Pass::backward_input)
           : text == "W" || text == "BW" ? std::optional(Pass::backward_weight)
                                         : std::nullopt;
  }

  std::string_view text_;
  std::uint32_t& overlap_;
  std::vector<Action>& actions_;
};

}  // namespace

Expected<Filter> read_filter(const RawValue& value, const std::string& path) {
  if (value.kind != Kind::table) {
    return fail(wrong(path, "a filter like { PP = 0 }", value));
  }
  Filter filter;
  filter.where = value.where;
  for (const RawEntry& entry : value.entries) {
    const std::string own = path + '.' + entry.key;
    if (entry.key != "PASS") {
      PIPER_ASSIGN(Condition condition, read_condition(entry.key, entry.value, own));
      filter.conditions.push_back(std::move(condition));
      continue;
    }
    std::vector<RawValue> passes{entry.value};
    if (all_of_kind(entry.value, Kind::text)) {
      passes = entry.value.items;
    }
    for (const RawValue& pass : passes) {
      PIPER_ASSIGN(const Pass read, read_pass(pass, own));
      filter.passes.push_back(read);
    }
  }
  return filter;
}

Expected<std::vector<std::uint32_t>> read_indices(const RawValue& value, const std::string& path) {
  if (value.kind != Kind::list) {
    return fail(wrong(path, "a list of indices", value));
  }
  std::vector<std::uint32_t> indices;
  for (const RawValue& item : value.items) {
    const auto index = to_index(item);
    if (!index) {
      return fail(wrong(path, "a list of indices", item));
    }
    indices.push_back(*index);
  }
  return indices;
}

Expected<Ranks> read_ranks(const RawValue& value, const std::string& path, const MeshRanks& mesh) {
  if (value.kind == Kind::table) {
    return read_coordinates(value, path, mesh);
  }
  if (!all_of_kind(value, Kind::integer)) {
    return fail(wrong(path, "a list of ranks, or mesh coordinates like { pp = 0 }", value));
  }
  PIPER_ASSIGN(std::vector<std::uint32_t> ranks, read_indices(value, path));
  Ranks read{std::move(ranks)};
  PIPER_TRY(check_ranks(read, mesh.world(), {"job", value.where}, path));
  return read;
}

Expected<Family> read_family(const RawValue& value, const std::string& path,
                             const MeshRanks& mesh) {
  std::vector<std::string> axes;
  if (value.kind == Kind::text) {
    axes.push_back(value.text);
  } else if (all_of_kind(value, Kind::text)) {
    for (const RawValue& item : value.items) {
      axes.push_back(item.text);
    }
  }
  if (!axes.empty()) {
    auto groups = mesh.along(axes);
    return groups ? Expected<Family>(Family{std::move(*groups)})
                  : fail(at(std::move(groups.error()), path, value.where));
  }
  if (!all_of_kind(value, Kind::list)) {
    return fail(wrong(path, "groups of ranks like [[0, 2], [1, 3]], or axes of the mesh", value));
  }
  Family family;
  for (const RawValue& item : value.items) {
    PIPER_ASSIGN(Ranks group, read_ranks(item, path, mesh));
    family.groups.push_back(std::move(group));
  }
  PIPER_TRY(check_family(family, mesh.world(), {"job", value.where}, path));
  return family;
}

Expected<std::vector<std::vector<Filter>>> read_groups(const RawValue& value,
                                                       const std::string& path) {
  if (!all_of_kind(value, Kind::list)) {
    return fail(wrong(path, "a list of groups, each a list of filters", value));
  }
  std::vector<std::vector<Filter>> groups;
  for (const RawValue& group : value.items) {
    groups.emplace_back();
    for (const RawValue& item : group.items) {
      PIPER_ASSIGN(Filter filter, read_filter(item, path));
      groups.back().push_back(std::move(filter));
    }
  }
  return groups;
}

Expected<std::vector<Action>> read_actions(const RawValue& value, const std::string& path) {
  std::vector<RawValue> texts{value};
  if (all_of_kind(value, Kind::text)) {
    texts = value.items;
  }
  std::vector<Action> actions;
  std::uint32_t overlap = 0;
  for (const RawValue& text : texts) {
    if (text.kind != Kind::text) {
      return fail(wrong(path, "actions like \"0F0 0B0\"", text));
    }
    if (const auto bad = Notation(text.text, overlap, actions).run()) {
      return fail(error("order.notation",
                        path +
                            ": expected stage, pass (F, B, I, W) and micro-batch like 0F2, or a "
                            "pair like (0F2;1B0)OVERLAP_F_B, got '" +
                            *bad + "'",
                        text.where));
    }
  }
  return actions;
}

}  // namespace piper

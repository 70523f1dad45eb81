#include "core/plugin/api_read.h"

#include <algorithm>
#include <array>

namespace piper {
namespace {

constexpr std::size_t kConditionSize = PIPER_FIRST_SIZE(piper_condition, values);

piper_code read_condition(piper_ctx& ctx, const std::string& what, const piper_condition& given,
                          Condition& out) {
  constexpr std::array<std::pair<Condition::Kind, std::size_t>, 5> kinds{
      {{Condition::Kind::equals, 1},
       {Condition::Kind::in_set, 0},
       {Condition::Kind::in_range, 2},
       {Condition::Kind::present, 0},
       {Condition::Kind::absent, 0}}};
  if (given.kind < 0 || static_cast<std::size_t>(given.kind) >= kinds.size()) {
    return bad_value(ctx, what + ": condition", given.kind);
  }
  std::string tag;
  if (!ctx.read("filter: tag", given.tag, tag) ||
      !ctx.check_span("filter: values", given.values, sizeof(std::uint32_t))) {
    return PIPER_INVALID;
  }
  const auto [kind, count] = kinds[static_cast<std::size_t>(given.kind)];
  if (tag.empty() || tag == kRegion) {
    return ctx.refuse(PIPER_INVALID, "abi.value",
                      what + ": expected the name of a tag, got '" + tag + "'");
  }
  if (kind != Condition::Kind::in_set && given.values.count != count) {
    return ctx.refuse(PIPER_INVALID, "abi.value",
                      what + ": expected " + std::to_string(count) + " values for tag '" + tag +
                          "', got " + std::to_string(given.values.count));
  }
  out = {std::move(tag), kind, {}};
  for (std::uint64_t i = 0; i < given.values.count; ++i) {
    out.values.push_back(element<std::uint32_t>(given.values, i));
  }
  return PIPER_OK;
}

piper_code read_regions(piper_ctx& ctx, const std::string& what, const piper_span& given,
                        Filter& out) {
  if (!ctx.check_span("filter: regions", given, sizeof(piper_region))) {
    return PIPER_INVALID;
  }
  if (given.count == 0) {
    return PIPER_OK;
  }
  Condition condition{std::string(kRegion), Condition::Kind::in_set, {}};
  for (std::uint64_t i = 0; i < given.count; ++i) {
    const std::size_t region =
        handle_index(element<piper_region>(given, i).bits, ctx.generation, ctx.view->region_count);
    if (region == ctx.view->region_count) {
      return ctx.refuse(PIPER_STALE, "abi.stale_handle",
                        what + ": the region is none that this call of plan has got");
    }
    condition.values.push_back(static_cast<std::uint32_t>(region));
  }
  std::sort(condition.values.begin(), condition.values.end());
  out.conditions.push_back(std::move(condition));
  return PIPER_OK;
}

}  // namespace

piper_code bad_value(piper_ctx& ctx, const std::string& what, std::int64_t value) {
  return ctx.refuse(PIPER_INVALID, "abi.value", what + ": unknown value " + std::to_string(value));
}

piper_code convert(piper_ctx& ctx, const std::string& what, const piper_filter& given,
                   Filter& out) {
  constexpr std::uint32_t all = PIPER_PASS_BIT(PIPER_UPDATE) * 2 - 1;
  if ((given.passes & ~all) != 0) {
    return bad_value(ctx, what + ": passes", given.passes);
  }
  piper_code code = PIPER_OK;
  out.conditions.reserve(out.conditions.size() + std::min<std::size_t>(given.conditions.count, 8));
  const auto add = [&](const piper_condition& condition) {
    out.conditions.emplace_back();
    code = read_condition(ctx, what, condition, out.conditions.back());
    return code == PIPER_OK;
  };
  if (!ctx.for_each<piper_condition>("filter: conditions", given.conditions, kConditionSize, add)) {
    return code == PIPER_OK ? PIPER_INVALID : code;
  }
  for (std::uint32_t pass = 0; pass <= static_cast<std::uint32_t>(PIPER_UPDATE); ++pass) {
    if ((given.passes & PIPER_PASS_BIT(pass)) != 0) {
      out.passes.push_back(static_cast<Pass>(pass));
    }
  }
  return read_regions(ctx, what, given.regions, out);
}

piper_code read_filter(piper_ctx& ctx, const std::string& what, const piper_filter* given,
                       Filter& out) {
  if (!ctx.read((what + ": filter").c_str(), given, kFilterSize)) {
    return PIPER_INVALID;
  }
  return convert(ctx, what, complete(given), out);
}

piper_code read_family(piper_ctx& ctx, const std::string& what, piper_ranks given, Family& out) {
  const std::size_t count = ctx.view->families.size();
  const std::size_t place = handle_index(given.bits, ctx.generation, count);
  if (place == count) {
    return ctx.refuse(PIPER_STALE, "abi.stale_handle",
                      what + ": the family of ranks is none that this call of plan has got");
  }
  out.groups = ctx.view->families[place];
  return PIPER_OK;
}

piper_code read_group(piper_ctx& ctx, const std::string& what, piper_ranks given, Ranks& out) {
  Family family;
  if (const piper_code code = read_family(ctx, what, given, family); code != PIPER_OK) {
    return code;
  }
  if (family.groups.size() != 1) {
    return ctx.refuse(PIPER_ERROR, "directive.family",
                      what + ": expected a family of one group of ranks, got " +
                          std::to_string(family.groups.size()));
  }
  out = std::move(family.groups[0]);
  return PIPER_OK;
}

piper_code read_name(piper_ctx& ctx, piper_str given, std::string& out) {
  std::string name;
  if (!ctx.read("stream", given, name)) {
    return PIPER_INVALID;
  }
  if (!name.empty()) {
    out = std::move(name);
  }
  return PIPER_OK;
}

piper_code add(piper_ctx& ctx, decltype(Directive::what) what) {
  ctx.proposal.directives.push_back({std::move(what), ctx.proposal.from});
  return PIPER_OK;
}

}  // namespace piper

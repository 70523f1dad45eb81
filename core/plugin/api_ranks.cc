// piper_ranks_api: families of groups of ranks as checked handles.
#include "core/plugin/context.h"

namespace piper {
namespace {

using Family = std::vector<Ranks>;

// Equal families have one handle, so that a plugin that asks in a loop does not fill the table.
piper_ranks intern(JobView& view, Family family) {
  const auto found = std::find(view.families.begin(), view.families.end(), family);
  const auto place = static_cast<std::size_t>(found - view.families.begin());
  if (found == view.families.end()) {
    view.families.push_back(std::move(family));
    view.lists.emplace_back();
  }
  return make_handle<piper_ranks>(place, view.generation);
}

std::size_t find(piper_ctx& ctx, const char* function, piper_ranks handle) {
  const std::size_t count = ctx.view->families.size();
  const std::size_t place = handle_index(handle.bits, ctx.generation, count);
  if (place == count) {
    ctx.refuse(
        PIPER_STALE, "abi.stale_handle",
        std::string(function) + ": the family of ranks is none that this call of plan has got");
  }
  return place;
}

piper_code give(piper_ctx& ctx, Expected<Family> family, piper_ranks* out) {
  if (!family) {
    return ctx.refuse(PIPER_ERROR, std::move(family.error()));
  }
  *out = intern(*ctx.view, std::move(*family));
  return PIPER_OK;
}

piper_code PIPER_CALL at(piper_ctx* ctx, const piper_span* given, piper_ranks* out) {
  return planning(ctx, "ranks.at", [&](piper_ctx& c) -> piper_code {
    if (given == nullptr || out == nullptr) {
      return c.null("ranks.at: an argument");
    }
    if (!c.check_span("ranks.at: coordinates", *given, sizeof(piper_coordinate))) {
      return PIPER_INVALID;
    }
    std::vector<std::pair<std::string, std::uint64_t>> coordinates;
    for (std::uint64_t i = 0; i < given->count; ++i) {
      const auto coordinate = element<piper_coordinate>(*given, i);
      std::string axis;
      if (!c.read("ranks.at: axis", coordinate.axis, axis)) {
        return PIPER_INVALID;
      }
      coordinates.emplace_back(std::move(axis), coordinate.index);
    }
    return give(
        c, c.view->mesh.at(coordinates).map([](Ranks ranks) { return Family{std::move(ranks)}; }),
        out);
  });
}

piper_code PIPER_CALL along(piper_ctx* ctx, const piper_span* given, piper_ranks* out) {
  return planning(ctx, "ranks.along", [&](piper_ctx& c) -> piper_code {
    if (given == nullptr || out == nullptr) {
      return c.null("ranks.along: an argument");
    }
    if (!c.check_span("ranks.along: axes", *given, sizeof(piper_str))) {
      return PIPER_INVALID;
    }
    std::vector<std::string> axes(static_cast<std::size_t>(given->count));
    for (std::uint64_t i = 0; i < given->count; ++i) {
      if (!c.read("ranks.along: axis", element<piper_str>(*given, i), axes[i])) {
        return PIPER_INVALID;
      }
    }
    return give(c, c.view->mesh.along(axes), out);
  });
}

Expected<Family> cut(const std::vector<std::uint32_t>& ranks, std::uint32_t group_size,
                     std::uint32_t world) {
  if (ranks.empty() || group_size == 0 || ranks.size() % group_size != 0) {
    return fail(error("mesh.rank", "expected whole groups of at least one rank, got " +
                                       std::to_string(ranks.size()) + " ranks in groups of " +
                                       std::to_string(group_size)));
  }
  std::vector<bool> seen(world, false);
  Family family(ranks.size() / group_size);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] >= world) {
      return fail(error("mesh.rank", "expected ranks below the world size " +
                                         std::to_string(world) + ", got " +
                                         std::to_string(ranks[i])));
    }
    if (seen[ranks[i]]) {
      return fail(error("mesh.rank", "rank " + std::to_string(ranks[i]) + " is there twice"));
    }
    seen[ranks[i]] = true;
    family[i / group_size].ranks.push_back(ranks[i]);
  }
  return family;
}

piper_code PIPER_CALL of(piper_ctx* ctx, const piper_span* given, std::uint32_t group_size,
                         piper_ranks* out) {
  return planning(ctx, "ranks.of", [&](piper_ctx& c) -> piper_code {
    if (given == nullptr || out == nullptr) {
      return c.null("ranks.of: an argument");
    }
    if (!c.check_span("ranks.of: ranks", *given, sizeof(std::uint32_t))) {
      return PIPER_INVALID;
    }
    std::vector<std::uint32_t> ranks;
    for (std::uint64_t i = 0; i < given->count; ++i) {
      ranks.push_back(element<std::uint32_t>(*given, i));
    }
    return give(c, cut(ranks, group_size, c.view->mesh.world()), out);
  });
}

piper_code PIPER_CALL group(piper_ctx* ctx, piper_ranks handle, std::uint32_t number,
                            piper_ranks* out) {
  return planning(ctx, "ranks.group", [&](piper_ctx& c) -> piper_code {
    if (out == nullptr) {
      return c.null("ranks.group: out");
    }
    const std::size_t place = find(c, "ranks.group", handle);
    if (place == c.view->families.size()) {
      return PIPER_STALE;
    }
    const Family& family = c.view->families[place];
    if (number >= family.size()) {
      return c.refuse(PIPER_ERROR, "mesh.group",
                      "expected a group below " + std::to_string(family.size()) + ", got " +
                          std::to_string(number));
    }
    *out = intern(*c.view, Family{family[number]});
    return PIPER_OK;
  });
}

piper_code PIPER_CALL list(piper_ctx* ctx, piper_ranks handle, piper_span* out,
                           std::uint32_t* group_size) {
  return planning(ctx, "ranks.list", [&](piper_ctx& c) -> piper_code {
    if (out == nullptr || group_size == nullptr) {
      return c.null("ranks.list: an argument");
    }
    const std::size_t place = find(c, "ranks.list", handle);
    if (place == c.view->families.size()) {
      return PIPER_STALE;
    }
    std::vector<std::uint32_t>& flat = c.view->lists[place];
    if (flat.empty()) {
      for (const Ranks& one : c.view->families[place]) {
        flat.insert(flat.end(), one.ranks.begin(), one.ranks.end());
      }
    }
    *out = to_span(flat);
    *group_size = static_cast<std::uint32_t>(c.view->families[place][0].ranks.size());
    return PIPER_OK;
  });
}

}  // namespace

const piper_ranks_api& ranks_api() {
  static constexpr piper_ranks_api table{sizeof(piper_ranks_api), 0, at, along, of, group, list};
  return table;
}

}  // namespace piper

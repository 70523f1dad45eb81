#include "core/directives/annotated.h"

#include <algorithm>

namespace piper {
namespace {

constexpr std::string_view kMicrobatch = "MB";
constexpr std::string_view kRegion = "REGION";

Diagnostic unknown_tag(const ModelGraph& model, const Condition& condition, const Filter& filter,
                       const Provenance& from, std::string_view what) {
  std::vector<std::string> known = model.tag_names;
  std::sort(known.begin(), known.end());
  return error("directive.unknown_tag",
               from.plugin + ": " + std::string(what) + " " + to_string(filter) +
                   ": the model has no tag '" + condition.tag + "'" + suggest(condition.tag, known),
               place_of(filter, from));
}

}  // namespace

const Location& place_of(const Filter& filter, const Provenance& from) {
  return filter.where.known() ? filter.where : from.where;
}

Expected<std::vector<RegionId>> select_regions(const Annotated& dag, const Filter& filter,
                                               const Provenance& from, std::string_view what,
                                               std::vector<std::uint32_t>* microbatches) {
  const auto refuse = [&](const std::string& why) {
    return fail(error("directive.filter",
                      from.plugin + ": " + std::string(what) + " " + to_string(filter) + ": " + why,
                      place_of(filter, from)));
  };
  if (!filter.passes.empty()) {
    return refuse("selects regions with all their passes; PASS is not allowed here");
  }
  std::vector<std::pair<const Condition*, TagId>> conditions;  // TagId none: the region's number
  std::vector<bool> wanted(dag.microbatches, true);
  for (const Condition& condition : filter.conditions) {
    if (condition.tag == kMicrobatch) {
      if (microbatches == nullptr) {
        return refuse("selects regions with all their micro-batches; MB is not allowed here");
      }
      for (std::uint32_t m = 0; m < dag.microbatches; ++m) {
        wanted[m] = wanted[m] && condition.holds(true, m);
      }
      continue;
    }
    if (condition.tag == kRegion) {
      conditions.emplace_back(&condition, none<TagId>());
      continue;
    }
    const std::optional<TagId> tag = dag.model.find_tag(condition.tag);
    if (!tag) {
      return fail(unknown_tag(dag.model, condition, filter, from, what));
    }
    conditions.emplace_back(&condition, *tag);
  }
  std::vector<RegionId> selected;
  for (std::uint32_t r = 0; r < dag.model.regions.size(); ++r) {
    const Region& region = dag.model.regions[r];
    const bool all = std::all_of(conditions.begin(), conditions.end(), [&](const auto& pair) {
      const std::optional<std::uint32_t> value =
          valid(pair.second) ? region.tag(pair.second) : std::optional<std::uint32_t>(r);
      return pair.first->holds(value.has_value(), value.value_or(0));
    });
    if (all) {
      selected.push_back(RegionId{r});
    }
  }
  if (selected.empty() || std::find(wanted.begin(), wanted.end(), true) == wanted.end()) {
    return fail(
        error("directive.no_match",
              from.plugin + ": " + std::string(what) + " " + to_string(filter) + " matches nothing",
              place_of(filter, from)));
  }
  if (microbatches != nullptr && std::find(wanted.begin(), wanted.end(), false) != wanted.end()) {
    for (std::uint32_t m = 0; m < dag.microbatches; ++m) {
      if (wanted[m]) {
        microbatches->push_back(m);
      }
    }
  }
  return selected;
}

Status check_ranks(const Ranks& ranks, std::uint32_t world, const Provenance& from,
                   std::string_view what) {
  const auto refuse = [&](const std::string& why) {
    return fail(
        error("directive.ranks", from.plugin + ": " + std::string(what) + ": " + why, from.where));
  };
  if (ranks.ranks.empty()) {
    return refuse("expected at least one rank, got none");
  }
  std::vector<std::uint32_t> sorted = ranks.ranks;
  std::sort(sorted.begin(), sorted.end());
  if (sorted.back() >= world) {
    return refuse("expected ranks below the world size " + std::to_string(world) + ", got " +
                  std::to_string(sorted.back()));
  }
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end()) {
    return refuse("rank " + std::to_string(*twice) + " is there twice");
  }
  return {};
}

Status check_family(const Family& family, std::uint32_t world, const Provenance& from,
                    std::string_view what) {
  std::vector<bool> taken(world, false);
  for (const Ranks& group : family.groups) {
    PIPER_TRY(check_ranks(group, world, from, what));
    if (group.ranks.size() != family.groups.front().ranks.size()) {
      return fail(error("directive.family",
                        from.plugin + ": " + std::string(what) +
                            ": expected groups of equal size, got one of " +
                            std::to_string(family.groups.front().ranks.size()) + " and one of " +
                            std::to_string(group.ranks.size()) + " ranks",
                        from.where));
    }
    for (const std::uint32_t rank : group.ranks) {
      if (taken[rank]) {
        return fail(error("directive.family",
                          from.plugin + ": " + std::string(what) +
                              ": expected disjoint groups, got rank " + std::to_string(rank) +
                              " in two",
                          from.where));
      }
      taken[rank] = true;
    }
  }
  return {};
}

std::optional<std::vector<std::vector<std::uint32_t>>> groups_in(const Family& family,
                                                                 const Ranks& place) {
  std::vector<std::vector<std::uint32_t>> found;
  std::size_t covered = 0;
  for (const Ranks& group : family.groups) {
    std::vector<std::uint32_t> positions;
    for (const std::uint32_t rank : group.ranks) {
      const auto at = std::find(place.ranks.begin(), place.ranks.end(), rank);
      if (at != place.ranks.end()) {
        positions.push_back(static_cast<std::uint32_t>(at - place.ranks.begin()));
      }
    }
    if (positions.size() == group.ranks.size()) {
      covered += positions.size();
      found.push_back(std::move(positions));
    }
  }
  if (family.groups.empty()) {
    found.emplace_back();
    for (std::uint32_t i = 0; i < place.ranks.size(); ++i) {
      found.back().push_back(i);
    }
    return found;
  }
  if (covered != place.ranks.size()) {
    return std::nullopt;
  }
  std::sort(found.begin(), found.end());
  return found;
}

Status check_partition(const Annotated& dag, const std::vector<RegionId>& regions,
                       const Family& family, const Provenance& from, const std::string& what,
                       const std::string& code) {
  for (const RegionId region : regions) {
    for (const Annotated::Placement& place : dag.placements[index(region)]) {
      if (!groups_in(family, place.ranks)) {
        Diagnostic wrong = error(code,
                                 from.plugin + ": " + what + ": the groups do not partition the " +
                                     "place of " + describe(dag.model, region),
                                 from.where);
        const Provenance& placer = dag.origins[place.origin];
        wrong.note("placed by " + placer.plugin, placer.where);
        return fail(std::move(wrong));
      }
    }
  }
  return {};
}

Diagnostic already(const Annotated& dag, RegionId region, const std::string& what,
                   const std::string& code, const Provenance& from, std::uint32_t first_origin) {
  const Provenance& first = dag.origins[first_origin];
  Diagnostic conflict = error(
      code, from.plugin + ": " + describe(dag.model, region) + " is already " + what, from.where);
  conflict.note("first " + what + " by " + first.plugin, first.where);
  return conflict;
}

std::string describe(const ModelGraph& model, RegionId id) {
  const Region& region = model.region(id);
  std::string text = "region " + std::to_string(index(id));
  for (const Tag& tag : region.tags) {
    text += " " + model.tag_names[index(tag.name)] + "=" + std::to_string(tag.index);
  }
  if (region.where.known()) {
    text += " (" + to_string(region.where) + ")";
  }
  return text;
}

void Annotated::distinguish(TagId tag) {
  distinguishing.resize(std::max(distinguishing.size(), std::size_t{index(tag)} + 1), false);
  distinguishing[index(tag)] = true;
}

bool Annotated::distinguishes(TagId tag) const {
  return index(tag) < distinguishing.size() && distinguishing[index(tag)];
}

std::string packed_list(const std::vector<std::uint32_t>& numbers) {
  std::string items;
  for (const std::uint32_t number : numbers) {
    items += (items.empty() ? "" : ",") + std::to_string(number);
  }
  return items;
}

std::string print(const Annotated& dag) {
  std::string text = "microbatches " + std::to_string(dag.microbatches) + "\n";
  for (std::uint32_t r = 0; r < dag.model.regions.size(); ++r) {
    text += "region " + std::to_string(r);
    for (const Tag& tag : dag.model.regions[r].tags) {
      text += " " + dag.model.tag_names[index(tag.name)] + "=" + std::to_string(tag.index);
    }
    for (const DirectiveKind* kind : directive_kinds()) {
      text += kind->mark != nullptr ? kind->mark(dag, RegionId{r}) : "";
    }
    text += "\n";
  }
  for (const DirectiveKind* kind : directive_kinds()) {
    text += kind->lines != nullptr ? kind->lines(dag) : "";
  }
  return text;
}

}  // namespace piper

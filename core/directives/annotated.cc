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
               from.where);
}

}  // namespace

Expected<std::vector<RegionId>> select_regions(const Annotated& dag, const Filter& filter,
                                               const Provenance& from, std::string_view what) {
  const auto refuse = [&](const std::string& why) {
    return fail(error("directive.filter",
                      from.plugin + ": " + std::string(what) + " " + to_string(filter) + ": " + why,
                      from.where));
  };
  if (!filter.passes.empty()) {
    return refuse("selects regions with all their passes; PASS is not allowed here");
  }
  std::vector<std::pair<const Condition*, TagId>> conditions;  // TagId none: the region's number
  for (const Condition& condition : filter.conditions) {
    if (condition.tag == kMicrobatch) {
      return refuse("selects regions with all their micro-batches; MB is not allowed here");
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
  if (selected.empty()) {
    return fail(
        error("directive.no_match",
              from.plugin + ": " + std::string(what) + " " + to_string(filter) + " matches nothing",
              from.where));
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

std::string print(const Annotated& dag) {
  std::string text = "microbatches " + std::to_string(dag.microbatches) + "\n";
  const auto list = [](const Ranks& ranks) {
    std::string items;
    for (const std::uint32_t rank : ranks.ranks) {
      items += (items.empty() ? "" : ",") + std::to_string(rank);
    }
    return items;
  };
  for (std::uint32_t r = 0; r < dag.model.regions.size(); ++r) {
    text += "region " + std::to_string(r);
    for (const Tag& tag : dag.model.regions[r].tags) {
      text += " " + dag.model.tag_names[index(tag.name)] + "=" + std::to_string(tag.index);
    }
    text += dag.placement[r] ? " @" + list(dag.placement[r]->ranks) : " @?";
    text += dag.replication[r] ? " replicated @" + list(dag.replication[r]->ranks) : "";
    text += dag.split_backward[r] ? " split_backward" : "";
    text += "\n";
  }
  for (const Annotated::Chain& chain : dag.chains) {
    text += to_string(Directive{OrderChainDirective{chain.ranks, chain.actions},
                                dag.origins[chain.origin]}) +
            "\n";
  }
  for (const Annotated::Order& order : dag.orders) {
    text += to_string(Directive{OrderDirective{order.groups}, dag.origins[order.origin]}) + "\n";
  }
  return text;
}

}  // namespace piper

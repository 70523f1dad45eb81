#include "core/directives/order.h"

#include <algorithm>

namespace piper {
namespace {

// Regions that an order tells apart by a tag are never fused, so that each side can be selected.
Status distinguish(Annotated& dag, const Filter& filter, const Provenance& from) {
  for (const Condition& condition : filter.conditions) {
    if (condition.tag == "MB") {
      continue;
    }
    const std::optional<TagId> tag = dag.model.find_tag(condition.tag);
    if (!tag) {
      return fail(error("directive.unknown_tag",
                        from.plugin + ": order " + to_string(filter) + ": the model has no tag '" +
                            condition.tag + "'" + suggest(condition.tag, dag.model.tag_names),
                        place_of(filter, from)));
    }
    dag.distinguishing.resize(dag.model.tag_names.size(), false);
    dag.distinguishing[index(*tag)] = true;
  }
  return {};
}

}  // namespace

Expected<Annotated> apply(Annotated dag, const OrderDirective& order, const Provenance& from,
                          std::uint32_t origin) {
  const bool empty = std::any_of(order.groups.begin(), order.groups.end(),
                                 [](const auto& group) { return group.empty(); });
  if (order.groups.size() < 2 || empty) {
    return fail(error("order.groups",
                      from.plugin +
                          ": order: expected at least two groups of at least one filter, got " +
                          std::to_string(order.groups.size()) + (empty ? " with an empty one" : ""),
                      from.where));
  }
  for (const std::vector<Filter>& group : order.groups) {
    for (const Filter& filter : group) {
      PIPER_TRY(distinguish(dag, filter, from));
    }
  }

  dag.orders.push_back({order.groups, origin});
  return dag;
}

Expected<Annotated> apply(Annotated dag, const OrderChainDirective& chain, const Provenance& from,
                          std::uint32_t origin) {
  const bool placed =
      std::any_of(dag.placements.begin(), dag.placements.end(), [&](const auto& places) {
        return std::any_of(places.begin(), places.end(), [&](const Annotated::Placement& place) {
          return place.ranks == chain.ranks;
        });
      });
  if (!placed) {
    return fail(error("order.chain",
                      from.plugin + ": order_chain: nothing is placed on exactly these ranks",
                      from.where));
  }

  if (chain.actions.empty()) {
    return fail(error("order.chain", from.plugin + ": order_chain: expected actions, got none",
                      from.where));
  }
  dag.chains.push_back({chain.ranks, chain.actions, origin});
  return dag;
}

}  // namespace piper

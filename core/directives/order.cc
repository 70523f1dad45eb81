#include "core/directives/order.h"

#include <algorithm>

#include "core/directives/annotated.h"
#include "core/directives/directive.h"
#include "core/directives/toml/table.h"

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
    dag.distinguish(*tag);
  }
  return {};
}

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

std::string lines(const Annotated& dag) {
  std::string text;
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

std::string text(const OrderDirective& order) {
  std::string groups;
  for (const std::vector<Filter>& group : order.groups) {
    std::string filters;
    for (const Filter& filter : group) {
      filters += (filters.empty() ? "" : ", ") + to_string(filter);
    }
    groups += (groups.empty() ? "[" : ", [") + filters + "]";
  }
  return "order " + groups;
}

std::string text(const OrderChainDirective& chain) {
  std::string text = "order_chain " + to_string(chain.ranks);
  for (const Action& action : chain.actions) {
    text += " " + std::to_string(action.stage) + std::string(name(action.pass)) +
            std::to_string(action.microbatch);
    text += action.overlap > 0 ? "&" + std::to_string(action.overlap) : "";
  }
  return text;
}

template <typename What>
void claim(const What&, const Provenance& from, Claims& claims) {
  claims.add(Claim::Kind::order, "", from);
}

void read(DirectiveTable& table, Directive& into) {
  const bool chain = table.has("actions") || table.has("ranks");
  if (chain == table.has("groups") || table.has("actions") != table.has("ranks")) {
    table.missing("either 'groups', or 'ranks' and 'actions'", chain ? "some of both" : "none");
    return;
  }
  if (chain) {
    Ranks ranks = table.ranks();
    into.what = OrderChainDirective{std::move(ranks),
                                    table.compound<std::vector<Action>>("actions", read_actions)};
  } else {
    into.what =
        OrderDirective{table.compound<std::vector<std::vector<Filter>>>("groups", read_groups)};
  }
}

}  // namespace

// A table of `order` says either.
template <>
const Descriptor<OrderDirective>& descriptor() {
  using Form = DirectiveKey::Form;
  static const Descriptor<OrderDirective> order{
      .kind = {.op = "order",
               .phase = DirectivePhase::order,
               .keys = {key_of("groups", Form::groups, "a list of groups, each a list of filters"),
                        key_of("ranks", Form::ranks, "with `actions`: the ranks of the place"),
                        key_of("actions", Form::actions,
                               "a chain of actions, as a text or a list of texts")},
               .read = read,
               .lines = lines},
      .text = text,
      .apply = apply,
      .claim = claim<OrderDirective>};
  return order;
}

template <>
const Descriptor<OrderChainDirective>& descriptor() {
  static const Descriptor<OrderChainDirective> chain{
      .kind = {.op = "order_chain", .phase = DirectivePhase::order, .keys = {}},
      .text = text,
      .apply = apply,
      .claim = claim<OrderChainDirective>};
  return chain;
}

}  // namespace piper

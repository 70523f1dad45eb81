// The two entries of piper_directive_api that say an order.
#include "core/plugin/api_read.h"

namespace piper {

piper_code PIPER_CALL order(piper_ctx* ctx, const piper_order* given) {
  return planning(ctx, "order", [&](piper_ctx& c) -> piper_code {
    OrderDirective directive;
    std::vector<piper_order_group> groups;
    if (!c.read("order", given, PIPER_FIRST_SIZE(piper_order, groups)) ||
        !c.read_all("order: groups", given->groups, PIPER_FIRST_SIZE(piper_order_group, filters),
                    groups)) {
      return PIPER_INVALID;
    }
    for (const piper_order_group& group : groups) {
      std::vector<piper_filter> filters;
      if (!c.read_all("order: filters", group.filters, kFilterSize, filters)) {
        return PIPER_INVALID;
      }
      directive.groups.emplace_back();
      for (const piper_filter& filter : filters) {
        directive.groups.back().emplace_back();
        if (const piper_code code = convert(c, "order", filter, directive.groups.back().back());
            code != PIPER_OK) {
          return code;
        }
      }
    }
    return add(c, std::move(directive));
  });
}

piper_code PIPER_CALL order_chain(piper_ctx* ctx, piper_ranks ranks, const piper_action* actions,
                                  std::uint64_t count, std::uint64_t stride) {
  return planning(ctx, "order_chain", [&](piper_ctx& c) -> piper_code {
    OrderChainDirective directive;
    const piper_span span{actions, count, stride};
    if (!c.check_span("order_chain: actions", span, sizeof(piper_action))) {
      return PIPER_INVALID;
    }
    if (const piper_code code = read_group(c, "order_chain", ranks, directive.ranks);
        code != PIPER_OK) {
      return code;
    }
    directive.actions.reserve(static_cast<std::size_t>(count));
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto action = element<piper_action>(span, i);
      if (action.pass >= static_cast<std::uint32_t>(PIPER_UPDATE)) {
        return bad_value(c, "order_chain: pass", action.pass);
      }
      directive.actions.push_back(
          {action.stage, action.microbatch, static_cast<Pass>(action.pass), action.overlap});
    }
    return add(c, std::move(directive));
  });
}

static_assert(static_cast<piper_pass>(Pass::forward) == PIPER_FORWARD);
static_assert(static_cast<piper_pass>(Pass::backward) == PIPER_BACKWARD);
static_assert(static_cast<piper_pass>(Pass::backward_input) == PIPER_BACKWARD_INPUT);
static_assert(static_cast<piper_pass>(Pass::backward_weight) == PIPER_BACKWARD_WEIGHT);
static_assert(static_cast<piper_pass>(Pass::update) == PIPER_UPDATE);

}  // namespace piper

// The two entries of piper_directive_api that say an order.
#include <algorithm>

#include "core/plugin/api_read.h"

namespace piper {

piper_code PIPER_CALL order(piper_ctx* ctx, const piper_order* given) {
  return planning(ctx, "order", [&](piper_ctx& c) -> piper_code {
    OrderDirective directive;
    if (!c.read("order", given, PIPER_FIRST_SIZE(piper_order, groups))) {
      return PIPER_INVALID;
    }
    constexpr std::uint64_t kMostReserved = 1U << 20U;  // a count is the plugin's word
    directive.groups.reserve(std::min(given->groups.count, kMostReserved));
    piper_code code = PIPER_OK;
    const std::string what = "order";
    const auto add_filter = [&](const piper_filter& filter) {
      directive.groups.back().emplace_back();
      code = convert(c, what, filter, directive.groups.back().back());
      return code == PIPER_OK;
    };
    const auto add_group = [&](const piper_order_group& group) {
      directive.groups.emplace_back();
      return c.for_each<piper_filter>("order: filters", group.filters, kFilterSize, add_filter);
    };
    if (!c.for_each<piper_order_group>("order: groups", given->groups,
                                       PIPER_FIRST_SIZE(piper_order_group, filters), add_group)) {
      return code == PIPER_OK ? PIPER_INVALID : code;
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

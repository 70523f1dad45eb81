// piper_directive_api: what a plugin says, checked for form and turned into core's directives.
// Whether a filter selects something, and whether directives go together, is for core/directives to
// say.
#include <array>

#include "core/plugin/context.h"

namespace piper {
namespace {

constexpr std::size_t kFilterSize = PIPER_FIRST_SIZE(piper_filter, regions);
constexpr std::size_t kConditionSize = PIPER_FIRST_SIZE(piper_condition, values);
constexpr std::string_view kRegion = "REGION";

piper_code bad_value(piper_ctx& ctx, const std::string& what, std::int64_t value) {
  return ctx.refuse(PIPER_INVALID, "abi.value", what + ": unknown value " + std::to_string(value));
}

piper_code unsupported(piper_ctx& ctx, const std::string& what) {
  return ctx.refuse(PIPER_UNSUPPORTED, "directive.unsupported",
                    what + " is not supported by this version of Piper");
}

piper_code add(piper_ctx& ctx, decltype(Directive::what) what) {
  ctx.proposal.directives.push_back({std::move(what), ctx.proposal.from});
  return PIPER_OK;
}

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
  if (given.count > 0) {
    std::sort(condition.values.begin(), condition.values.end());
    out.conditions.push_back(std::move(condition));
  }
  return PIPER_OK;
}

piper_code convert(piper_ctx& ctx, const std::string& what, const piper_filter& given,
                   Filter& out) {
  constexpr std::uint32_t all = PIPER_PASS_BIT(PIPER_UPDATE) * 2 - 1;
  if ((given.passes & ~all) != 0) {
    return bad_value(ctx, what + ": passes", given.passes);
  }
  std::vector<piper_condition> conditions;
  if (!ctx.read_all("filter: conditions", given.conditions, kConditionSize, conditions)) {
    return PIPER_INVALID;
  }
  for (const piper_condition& condition : conditions) {
    out.conditions.emplace_back();
    if (const piper_code code = read_condition(ctx, what, condition, out.conditions.back());
        code != PIPER_OK) {
      return code;
    }
  }
  for (std::uint32_t pass = 0; pass <= static_cast<std::uint32_t>(PIPER_UPDATE); ++pass) {
    if ((given.passes & PIPER_PASS_BIT(pass)) != 0) {
      out.passes.push_back(static_cast<Pass>(pass));
    }
  }
  return read_regions(ctx, what, given.regions, out);
}

// The filter that a directive points to.
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

piper_code check_one_group(piper_ctx& ctx, const std::string& what, const Family& family) {
  if (family.groups.size() == 1) {
    return PIPER_OK;
  }
  return ctx.refuse(PIPER_ERROR, "directive.family",
                    what + ": expected a family of one group of ranks, got " +
                        std::to_string(family.groups.size()));
}

// The one group of a family.
piper_code read_group(piper_ctx& ctx, const std::string& what, piper_ranks given, Ranks& out) {
  Family family;
  if (const piper_code code = read_family(ctx, what, given, family); code != PIPER_OK) {
    return code;
  }
  if (const piper_code code = check_one_group(ctx, what, family); code != PIPER_OK) {
    return code;
  }
  out = std::move(family.groups[0]);
  return PIPER_OK;
}

piper_code read_stream(piper_ctx& ctx, piper_str given, std::string& out) {
  std::string name;
  if (!ctx.read("stream", given, name)) {
    return PIPER_INVALID;
  }
  if (!name.empty()) {
    out = std::move(name);
  }
  return PIPER_OK;
}

// Runs steps until one fails.
template <typename... Steps>
piper_code in_turn(Steps&&... steps) {
  piper_code code = PIPER_OK;
  static_cast<void>((((code = steps()) == PIPER_OK) && ...));
  return code;
}

bool may_claim(const piper_ctx& ctx, const std::string& axis) {
  const std::vector<Option>& options = ctx.view->strategy.options;
  for (const std::string& declared : ctx.view->strategy.plugin.manifest.axes) {
    if (declared == axis) {
      return true;
    }
    const auto named = std::find_if(options.begin(), options.end(), [&](const Option& option) {
      return "$" + option.spec.name == declared;
    });
    if (named != options.end() &&
        std::find(named->texts.begin(), named->texts.end(), axis) != named->texts.end()) {
      return true;
    }
  }
  return false;
}

piper_code PIPER_CALL claim(piper_ctx* ctx, const piper_claim* given) {
  return planning(ctx, "claim", [&](piper_ctx& c) -> piper_code {
    std::string name;
    if (!c.read("claim", given, PIPER_FIRST_SIZE(piper_claim, name)) ||
        !c.read("claim: name", given->name, name)) {
      return PIPER_INVALID;
    }
    constexpr std::array<Claim::Kind, 3> kinds{Claim::Kind::axis, Claim::Kind::split,
                                               Claim::Kind::order};
    if (given->kind < 0 || static_cast<std::size_t>(given->kind) >= kinds.size()) {
      return bad_value(c, "claim: kind", given->kind);
    }
    const Claim::Kind kind = kinds[static_cast<std::size_t>(given->kind)];
    if (kind == Claim::Kind::axis) {
      if (auto known = c.view->mesh.at({{name, 0}}); !known) {
        return c.refuse(PIPER_ERROR, std::move(known.error()));
      }
      if (!may_claim(c, name)) {
        return c.refuse(
            PIPER_ERROR, "plugin.axis_undeclared",
            "claims mesh axis '" + name + "', which its manifest does not list under 'axes'");
      }
    } else if (!name.empty()) {
      return c.refuse(PIPER_INVALID, "abi.value", "claim: expected no name, got '" + name + "'");
    }
    c.proposal.claims.push_back({kind, std::move(name), c.proposal.from});
    return PIPER_OK;
  });
}

piper_code PIPER_CALL tag(piper_ctx* ctx, const piper_tag* given) {
  return planning(ctx, "tag", [&](piper_ctx& c) -> piper_code {
    TagDirective directive;
    if (!c.read("tag", given, PIPER_FIRST_SIZE(piper_tag, filter)) ||
        !c.read("tag: name", given->name, directive.name)) {
      return PIPER_INVALID;
    }
    if (directive.name.empty() || directive.name == "MB" || directive.name == "PASS" ||
        directive.name == kRegion) {
      return c.refuse(PIPER_INVALID, "abi.value",
                      "tag: expected a name that is not reserved, got '" + directive.name + "'");
    }
    directive.index = given->index;
    return in_turn([&] { return read_filter(c, "tag", given->filter, directive.filter); },
                   [&] { return add(c, std::move(directive)); });
  });
}

piper_code PIPER_CALL split(piper_ctx* ctx, const piper_split* given) {
  return planning(ctx, "split", [&](piper_ctx& c) -> piper_code {
    SplitDirective directive;
    if (!c.read("split", given, PIPER_FIRST_SIZE(piper_split, filter))) {
      return PIPER_INVALID;
    }
    if (given->n == 0) {
      return bad_value(c, "split: n", 0);
    }
    directive.n = given->n;
    return in_turn([&] { return read_stream(c, given->dim, directive.dim); },
                   [&] { return read_filter(c, "split", given->filter, directive.filter); },
                   [&] { return add(c, std::move(directive)); });
  });
}

piper_code PIPER_CALL split_backward(piper_ctx* ctx, const piper_split_backward* given) {
  return planning(ctx, "split_backward", [&](piper_ctx& c) -> piper_code {
    SplitBackwardDirective directive;
    if (!c.read("split_backward", given, PIPER_FIRST_SIZE(piper_split_backward, filter))) {
      return PIPER_INVALID;
    }
    return in_turn(
        [&] { return read_filter(c, "split_backward", given->filter, directive.filter); },
        [&] { return add(c, std::move(directive)); });
  });
}

piper_code PIPER_CALL place(piper_ctx* ctx, const piper_place* given) {
  return planning(ctx, "place", [&](piper_ctx& c) -> piper_code {
    PlaceDirective directive;
    if (!c.read("place", given, PIPER_FIRST_SIZE(piper_place, stream))) {
      return PIPER_INVALID;
    }
    return in_turn([&] { return read_filter(c, "place", given->filter, directive.filter); },
                   [&] { return read_group(c, "place", given->ranks, directive.ranks); },
                   [&] { return read_stream(c, given->stream, directive.stream); },
                   [&] { return add(c, std::move(directive)); });
  });
}

piper_code read_policy(piper_ctx& ctx, const piper_replicate& given, ReplicateDirective& out) {
  constexpr std::uint32_t present = PIPER_REPLICATE_PREFETCH | PIPER_REPLICATE_BUCKET_BYTES;
  constexpr std::uint32_t shards = PIPER_SHARD_OPTIMIZER | PIPER_SHARD_GRADS | PIPER_SHARD_PARAMS;
  if ((given.present & ~present) != 0) {
    return bad_value(ctx, "replicate: present", given.present);
  }
  if ((given.shard & ~shards) != 0) {
    return bad_value(ctx, "replicate: shard", given.shard);
  }
  for (const std::int32_t period : {given.keep_gathered, given.reduce}) {
    if (period < 0 || period > PIPER_EACH_STEP) {
      return bad_value(ctx, "replicate: keep_gathered or reduce", period);
    }
  }
  out.shard_optimizer = (given.shard & PIPER_SHARD_OPTIMIZER) != 0;
  out.shard_grads = (given.shard & PIPER_SHARD_GRADS) != 0;
  out.shard_params = (given.shard & PIPER_SHARD_PARAMS) != 0;
  out.keep_gathered = given.keep_gathered == PIPER_EACH_STEP ? Span::step : Span::chain;
  out.reduce = given.reduce == PIPER_EACH_STEP ? Span::step : Span::chain;
  if ((given.present & PIPER_REPLICATE_PREFETCH) != 0) {
    out.prefetch = given.prefetch;
  }
  if ((given.present & PIPER_REPLICATE_BUCKET_BYTES) != 0) {
    out.bucket_bytes = given.bucket_bytes;
  }
  return PIPER_OK;
}

// What the planner can lower and the runtime cannot run.
piper_code check_runs(piper_ctx& ctx, const piper_replicate& given) {
  if (given.shard != 0 || given.present != 0 || given.keep_gathered != 0 || given.reduce != 0 ||
      given.gather_stream.len > 0) {
    return unsupported(
        ctx, "replicate with sharding, buckets, prefetch or a reduction other than the default");
  }
  return PIPER_OK;
}

piper_code PIPER_CALL replicate(piper_ctx* ctx, const piper_replicate* given) {
  return planning(ctx, "replicate", [&](piper_ctx& c) -> piper_code {
    ReplicateDirective directive;
    if (!c.read("replicate", given, PIPER_FIRST_SIZE(piper_replicate, reduce))) {
      return PIPER_INVALID;
    }
    return in_turn([&] { return read_policy(c, *given, directive); },
                   [&] { return check_runs(c, *given); },
                   [&] { return read_filter(c, "replicate", given->filter, directive.filter); },
                   [&] { return read_family(c, "replicate", given->ranks, directive.family); },
                   [&] { return check_one_group(c, "replicate", directive.family); },
                   [&] { return read_stream(c, given->reduce_stream, directive.reduce_stream); },
                   [&] { return read_stream(c, given->gather_stream, directive.gather_stream); },
                   [&] { return add(c, std::move(directive)); });
  });
}

piper_code PIPER_CALL shard(piper_ctx* ctx, const piper_shard* given) {
  return planning(ctx, "shard", [&](piper_ctx& c) -> piper_code {
    ShardDirective directive;
    if (!c.read("shard", given, PIPER_FIRST_SIZE(piper_shard, stream))) {
      return PIPER_INVALID;
    }
    if (given->kind != PIPER_SHARD_EXPERTS) {
      return bad_value(c, "shard: kind", given->kind);
    }
    // The runtime cannot run experts.
    return in_turn([&] { return unsupported(c, "shard"); },
                   [&] { return read_filter(c, "shard", given->filter, directive.filter); },
                   [&] { return read_family(c, "shard", given->ranks, directive.family); },
                   [&] { return read_stream(c, given->stream, directive.stream); },
                   [&] { return add(c, std::move(directive)); });
  });
}

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
      if (action.overlap != 0) {
        return unsupported(c, "order_chain with overlap");
      }
      directive.actions.push_back(
          {action.stage, action.microbatch, static_cast<Pass>(action.pass), action.overlap});
    }
    return add(c, std::move(directive));
  });
}

}  // namespace

static_assert(static_cast<piper_pass>(Pass::forward) == PIPER_FORWARD);
static_assert(static_cast<piper_pass>(Pass::backward) == PIPER_BACKWARD);
static_assert(static_cast<piper_pass>(Pass::backward_input) == PIPER_BACKWARD_INPUT);
static_assert(static_cast<piper_pass>(Pass::backward_weight) == PIPER_BACKWARD_WEIGHT);
static_assert(static_cast<piper_pass>(Pass::update) == PIPER_UPDATE);

const piper_directive_api& directive_api() {
  static constexpr piper_directive_api table{sizeof(piper_directive_api),
                                             0,
                                             claim,
                                             tag,
                                             split,
                                             split_backward,
                                             place,
                                             replicate,
                                             shard,
                                             order,
                                             order_chain};
  return table;
}

}  // namespace piper

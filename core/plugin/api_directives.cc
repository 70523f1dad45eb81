// piper_directive_api: what a plugin says, checked for form and turned into core's directives.
// Whether a filter selects something, and whether directives go together, is for core/directives to
// say.
#include <algorithm>
#include <array>

#include "core/directives/annotated.h"
#include "core/plugin/api_read.h"

namespace piper {
namespace {

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

piper_code read_partition(piper_ctx& ctx, const piper_partition* given, Partition& out) {
  using By = Partition::By;
  constexpr std::array<By, 5> kinds{By::cost, By::flops, By::bytes, By::count, By::boundaries};
  if (!ctx.read("tag: partition", given, PIPER_FIRST_SIZE(piper_partition, boundaries)) ||
      !ctx.read("tag: over", given->over, out.over) ||
      !ctx.check_span("tag: boundaries", given->boundaries, sizeof(std::uint32_t))) {
    return PIPER_INVALID;
  }
  if (given->by < 0 || static_cast<std::size_t>(given->by) >= kinds.size()) {
    return bad_value(ctx, "tag: by", given->by);
  }
  out.by = kinds[static_cast<std::size_t>(given->by)];
  out.parts = given->parts;
  for (std::uint64_t i = 0; i < given->boundaries.count; ++i) {
    out.boundaries.push_back(element<std::uint32_t>(given->boundaries, i));
  }
  return PIPER_OK;
}

// One directive for each part.
piper_code add_parts(piper_ctx& ctx, const TagDirective& whole, const Partition& how) {
  const JobView& view = *ctx.view;
  Annotated captured;
  captured.model = view.model;
  const auto regions = select_regions(captured, whole.filter, ctx.proposal.from, "tag");
  if (!regions) {
    ctx.errors.insert(ctx.errors.end(), regions.error().begin(), regions.error().end());
    return PIPER_ERROR;
  }
  const std::int64_t rows =
      std::max<std::int64_t>(1, view.job.global_rows / std::max(1U, view.job.microbatches));
  const auto parts = cut_into_parts(view.model, *regions, how, [&](RegionId region) {
    return how.by == Partition::By::cost ? view.regions[index(region)].cost
                                         : cost_of(view.model, region, how.by, rows);
  });
  if (!parts) {
    const Diagnostic& wrong = parts.error().front();
    return ctx.refuse(PIPER_ERROR, wrong.code.c_str(), "tag " + whole.name + ": " + wrong.message);
  }
  for (const ModelPart& part : *parts) {
    TagDirective directive{{}, whole.name, whole.index};
    directive.index = static_cast<std::uint32_t>(&part - parts->data());
    Condition members{std::string(kRegion), Condition::Kind::in_set, {}};
    for (const RegionId region : part.regions) {
      members.values.push_back(index(region));
    }
    directive.filter.conditions.push_back(std::move(members));
    add(ctx, std::move(directive));
  }
  return PIPER_OK;
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
    if (!PIPER_HAS(piper_tag, given, partition) || given->partition == nullptr) {
      return in_turn([&] { return read_filter(c, "tag", given->filter, directive.filter); },
                     [&] { return add(c, std::move(directive)); });
    }
    Partition how;
    return in_turn([&] { return read_filter(c, "tag", given->filter, directive.filter); },
                   [&] { return read_partition(c, given->partition, how); },
                   [&] { return add_parts(c, directive, how); });
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
    return in_turn([&] { return read_name(c, given->dim, directive.dim); },
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
                   [&] { return read_name(c, given->stream, directive.stream); },
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

piper_code PIPER_CALL replicate(piper_ctx* ctx, const piper_replicate* given) {
  return planning(ctx, "replicate", [&](piper_ctx& c) -> piper_code {
    ReplicateDirective directive;
    if (!c.read("replicate", given, PIPER_FIRST_SIZE(piper_replicate, reduce))) {
      return PIPER_INVALID;
    }
    return in_turn([&] { return read_policy(c, *given, directive); },
                   [&] { return read_filter(c, "replicate", given->filter, directive.filter); },
                   [&] { return read_family(c, "replicate", given->ranks, directive.family); },
                   [&] { return read_name(c, given->reduce_stream, directive.reduce_stream); },
                   [&] { return read_name(c, given->gather_stream, directive.gather_stream); },
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
    return in_turn([&] { return read_filter(c, "shard", given->filter, directive.filter); },
                   [&] { return read_family(c, "shard", given->ranks, directive.family); },
                   [&] { return read_name(c, given->stream, directive.stream); },
                   [&] { return add(c, std::move(directive)); });
  });
}

piper_code PIPER_CALL recompute(piper_ctx* ctx, const piper_recompute* given) {
  return planning(ctx, "recompute", [&](piper_ctx& c) -> piper_code {
    RecomputeDirective directive;
    if (!c.read("recompute", given, PIPER_FIRST_SIZE(piper_recompute, filter))) {
      return PIPER_INVALID;
    }
    return in_turn([&] { return read_filter(c, "recompute", given->filter, directive.filter); },
                   [&] { return add(c, std::move(directive)); });
  });
}

}  // namespace

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
                                             order_chain,
                                             recompute};
  return table;
}

}  // namespace piper

#include "core/directives/annotate.h"

#include <algorithm>
#include <numeric>

#include "core/directives/order.h"
#include "core/directives/place.h"
#include "core/directives/replicate.h"
#include "core/directives/split.h"
#include "core/directives/split_backward.h"
#include "core/directives/tag.h"

namespace piper {
namespace {

std::string name_of(const Claim& claim) {
  switch (claim.kind) {
    case Claim::Kind::axis:
      return "mesh axis '" + claim.name + "'";
    case Claim::Kind::split:
      return "the split into micro-batches";
    case Claim::Kind::order:
      return claim.name.empty() ? "the order" : "the order of '" + claim.name + "'";
  }
  return claim.name;
}

// Every claim is exclusive.
Status check_claims(const Config& config, const std::vector<Proposal>& proposals) {
  std::vector<const Claim*> claims;
  for (const Proposal& proposal : proposals) {
    for (const Claim& claim : proposal.claims) {
      const auto same = std::find_if(claims.begin(), claims.end(), [&](const Claim* other) {
        return other->kind == claim.kind && other->name == claim.name;
      });
      if (same != claims.end()) {
        Diagnostic conflict = error(
            "claim.conflict",
            claim.from.plugin + " and " + (*same)->from.plugin + " both claim " + name_of(claim),
            claim.from.where);
        conflict.note("first claimed by " + (*same)->from.plugin, (*same)->from.where);
        return fail(std::move(conflict));
      }
      claims.push_back(&claim);
    }
  }
  for (const auto& [axis, size] : config.mesh.axes) {
    const bool claimed =
        std::any_of(claims.begin(), claims.end(), [&, name = axis](const Claim* c) {
          return c->kind == Claim::Kind::axis && c->name == name;
        });
    if (size > 1 && axis != "dp" && !claimed) {
      return fail(error("claim.axis",
                        "mesh axis '" + axis + "' has size " + std::to_string(size) +
                            " but no [[strategy]] uses it",
                        config.where("mesh." + axis)));
    }
  }
  return {};
}

std::size_t phase(const Directive& directive) {
  // The order of the variant's alternatives, with both kinds of order last.
  return std::min<std::size_t>(directive.what.index(), 5);
}

Expected<Annotated> place_the_rest(Annotated dag) {
  const bool nothing = std::none_of(dag.placement.begin(), dag.placement.end(),
                                    [](const auto& place) { return place.has_value(); });
  if (nothing) {
    Ranks all;
    all.ranks.resize(dag.world);
    std::iota(all.ranks.begin(), all.ranks.end(), 0U);
    return apply(std::move(dag), PlaceDirective{{}, all, "compute"}, {"core", {}}, 0);
  }
  for (std::uint32_t r = 0; r < dag.placement.size(); ++r) {
    if (!dag.placement[r]) {
      return fail(
          error("place.missing",
                describe(dag.model, RegionId{r}) + " is placed nowhere, but other regions are",
                dag.model.regions[r].where));
    }
  }
  std::vector<RegionId> first_on(dag.world, none<RegionId>());  // by rank: a region placed there
  for (std::uint32_t r = 0; r < dag.placement.size(); ++r) {
    const Annotated::Placement& place = *dag.placement[r];
    for (const std::uint32_t rank : place.ranks.ranks) {
      if (!valid(first_on[rank])) {
        first_on[rank] = RegionId{r};
        continue;
      }
      const Annotated::Placement& other = *dag.placement[index(first_on[rank])];
      if (other.ranks != place.ranks) {
        Diagnostic overlap =
            error("place.overlap",
                  describe(dag.model, RegionId{r}) + " and " + describe(dag.model, first_on[rank]) +
                      " are placed on groups that share rank " + std::to_string(rank) +
                      "; expected equal or disjoint groups",
                  dag.origins[place.origin].where);
        overlap.note("the other place", dag.origins[other.origin].where);
        return fail(std::move(overlap));
      }
    }
  }
  return dag;
}

}  // namespace

Expected<Annotated> annotate(const Config& config, const ModelGraph& model,
                             const std::vector<Proposal>& proposals) {
  PIPER_TRY(check_claims(config, proposals));
  Annotated dag;
  dag.model = model;
  dag.world = config.mesh.world();
  dag.global_rows = config.training.global_batch_size;
  dag.placement.resize(model.regions.size());
  dag.replication.resize(model.regions.size());
  dag.split_backward.resize(model.regions.size());
  dag.distinguishing.resize(model.tag_names.size());
  dag.origins.push_back({"core", {}});

  std::vector<std::pair<const Directive*, std::uint32_t>> directives;  // with their origins
  for (const Proposal& proposal : proposals) {
    dag.origins.push_back(proposal.from);
    for (const Directive& directive : proposal.directives) {
      directives.emplace_back(&directive, static_cast<std::uint32_t>(dag.origins.size() - 1));
    }
  }
  std::stable_sort(directives.begin(), directives.end(),
                   [](const auto& a, const auto& b) { return phase(*a.first) < phase(*b.first); });
  dag.microbatches = static_cast<std::uint32_t>(config.training.microbatches);

  std::size_t next = 0;
  const auto apply_through = [&](std::size_t last_phase) -> Status {
    for (; next < directives.size() && phase(*directives[next].first) <= last_phase; ++next) {
      const auto [directive, origin] = directives[next];
      PIPER_ASSIGN(
          dag, std::visit([&, o = origin, d = directive](
                              const auto& what) { return apply(std::move(dag), what, d->from, o); },
                          directive->what));
    }
    return {};
  };
  PIPER_TRY(apply_through(3));  // tag, split, split_backward, place
  PIPER_ASSIGN(dag, place_the_rest(std::move(dag)));
  PIPER_TRY(apply_through(4));  // replicate
  for (std::uint32_t r = 0; r < dag.replication.size(); ++r) {
    if (!dag.replication[r]) {
      dag.replication[r] = Annotated::Replication{dag.placement[r]->ranks, "reduce", 0};
    }
  }
  PIPER_TRY(apply_through(5));  // order
  return dag;
}

}  // namespace piper

#include "core/directives/annotate.h"

#include <algorithm>
#include <numeric>

#include "core/directives/mesh_ranks.h"
#include "core/directives/order.h"
#include "core/directives/place.h"
#include "core/directives/recompute.h"
#include "core/directives/replicate.h"
#include "core/directives/sequence.h"
#include "core/directives/shard.h"
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
    case Claim::Kind::place:
      return "placement";
    case Claim::Kind::replicate:
      return "replication";
    case Claim::Kind::shard:
      return "experts";
    case Claim::Kind::order:
      return claim.name.empty() ? "the order" : "the order of '" + claim.name + "'";
  }
  return claim.name;
}

// A proposal that places along an axis has forgotten to claim it, most likely.
Diagnostic unclaimed(const Config& config, const std::string& axis, std::uint32_t size,
                     const std::vector<Proposal>& proposals) {
  const MeshRanks mesh(config.mesh);
  for (const Proposal& proposal : proposals) {
    for (const Directive& directive : proposal.directives) {
      const auto* place = std::get_if<PlaceDirective>(&directive.what);
      if (place == nullptr || place->ranks.ranks.empty() || mesh.extends(place->ranks, axis)) {
        continue;
      }
      Diagnostic wrong = error("claim.axis",
                               directive.from.plugin + ": places along mesh axis '" + axis +
                                   "' and has not claimed it (claim_axis)",
                               directive.from.where);
      wrong.note("its size is " + std::to_string(size), config.where("mesh." + axis));
      return wrong;
    }
  }
  return error("claim.axis",
               "mesh axis '" + axis + "' has size " + std::to_string(size) +
                   " but no [[strategy]] or [[directive]] uses it",
               config.where("mesh." + axis));
}

// An exclusive claim excludes every claim of the same thing by another proposal.
Status check_claims(const Config& config, const std::vector<Proposal>& proposals) {
  std::vector<const Claim*> claims;
  for (const Proposal& proposal : proposals) {
    const std::size_t others = claims.size();
    for (const Claim& claim : proposal.claims) {
      const auto end = claims.begin() + static_cast<std::ptrdiff_t>(others);
      const auto same = std::find_if(claims.begin(), end, [&](const Claim* other) {
        return other->kind == claim.kind && other->name == claim.name &&
               (other->exclusive || claim.exclusive);
      });
      if (same != end) {
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
      return fail(unclaimed(config, axis, size, proposals));
    }
  }
  return {};
}

// Who places anything, each once: "hanayo", "hanayo, job".
std::string placers(const Annotated& dag, const Provenance*& first) {
  std::vector<std::uint32_t> origins;
  for (const std::vector<Annotated::Placement>& places : dag.placements) {
    for (const Annotated::Placement& place : places) {
      if (std::find(origins.begin(), origins.end(), place.origin) == origins.end()) {
        origins.push_back(place.origin);
      }
    }
  }
  std::string names;
  for (const std::uint32_t origin : origins) {
    const Provenance& from = dag.origins[origin];
    first = first == nullptr ? &from : first;
    const std::string name = from.plugin;
    if ((", " + names + ", ").find(", " + name + ", ") == std::string::npos) {
      names += (names.empty() ? "" : ", ") + name;
    }
  }
  return names;
}

// Every micro-batch of every region has a place.
Status check_placed(const Annotated& dag) {
  for (std::uint32_t r = 0; r < dag.placements.size(); ++r) {
    std::size_t placed = 0;
    for (const Annotated::Placement& place : dag.placements[r]) {
      placed += place.microbatches.empty() ? dag.microbatches : place.microbatches.size();
    }
    if (placed < dag.microbatches) {
      const Provenance* first = nullptr;
      const std::string who = placers(dag, first);
      return fail(error("place.missing",
                        who + ": " + describe(dag.model, RegionId{r}) +
                            (placed == 0 ? " is placed nowhere, but other regions are"
                                         : " is placed for " + std::to_string(placed) + " of " +
                                               std::to_string(dag.microbatches) + " micro-batches"),
                        first->where));
    }
  }
  return {};
}

// Every rank has something to run.
Status check_idle(const Annotated& dag) {
  std::vector<bool> has_place(dag.world, false);
  for (const std::vector<Annotated::Placement>& places : dag.placements) {
    for (const Annotated::Placement& place : places) {
      for (const std::uint32_t rank : place.ranks.ranks) {
        has_place[rank] = true;
      }
    }
  }
  const auto idle = std::find(has_place.begin(), has_place.end(), false);
  if (idle != has_place.end()) {
    const Annotated::Placement& first = dag.placements.front().front();
    return fail(error("place.idle",
                      "expected places that use all " + std::to_string(dag.world) +
                          " ranks, but nothing is placed on rank " +
                          std::to_string(idle - has_place.begin()),
                      dag.origins[first.origin].where));
  }
  return {};
}

// Two places are equal or disjoint.
Status check_overlap(const Annotated& dag) {
  using First = std::pair<RegionId, const Annotated::Placement*>;
  std::vector<First> first_on(dag.world, First{none<RegionId>(), nullptr});
  for (std::uint32_t r = 0; r < dag.placements.size(); ++r) {
    for (const Annotated::Placement& place : dag.placements[r]) {
      for (const std::uint32_t rank : place.ranks.ranks) {
        auto& [region, other] = first_on[rank];
        if (other == nullptr) {
          first_on[rank] = {RegionId{r}, &place};
        } else if (other->ranks != place.ranks) {
          Diagnostic overlap =
              error("place.overlap",
                    describe(dag.model, RegionId{r}) + " and " + describe(dag.model, region) +
                        " are placed on groups that share rank " + std::to_string(rank) +
                        "; expected equal or disjoint groups",
                    dag.origins[place.origin].where);
          overlap.note("the other place", dag.origins[other->origin].where);
          return fail(std::move(overlap));
        }
      }
    }
  }
  return {};
}

Expected<Annotated> place_the_rest(Annotated dag) {
  const bool nothing = std::all_of(dag.placements.begin(), dag.placements.end(),
                                   [](const auto& places) { return places.empty(); });
  if (nothing) {
    Ranks all;
    all.ranks.resize(dag.world);
    std::iota(all.ranks.begin(), all.ranks.end(), 0U);
    return apply(std::move(dag), PlaceDirective{{}, all, "compute"}, {"core", {}}, 0);
  }
  PIPER_TRY(check_placed(dag));
  PIPER_TRY(check_overlap(dag));
  PIPER_TRY(check_idle(dag));
  return dag;
}

// What nobody replicates lives on its place, unsharded.
Annotated replicate_the_rest(Annotated dag) {
  const auto plain = static_cast<std::uint32_t>(dag.replications.size());
  bool used = false;
  for (std::uint32_t& replication : dag.replication) {
    used = used || replication == Annotated::kNothing;
    replication = replication == Annotated::kNothing ? plain : replication;
  }
  if (used) {
    dag.replications.push_back({ReplicateDirective{}, 0});
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
  dag.placements.resize(model.regions.size());
  dag.replication.resize(model.regions.size(), Annotated::kNothing);
  dag.sharding.resize(model.regions.size(), Annotated::kNothing);
  dag.recompute.resize(model.regions.size(), Annotated::kNothing);
  dag.split_backward.resize(model.regions.size());
  dag.backward_split_origin.resize(model.regions.size(), 0);
  dag.distinguishing.resize(model.tag_names.size());
  PIPER_ASSIGN(const Sequence directives, sequence(proposals));
  dag.origins = directives.origins;
  dag.microbatches = static_cast<std::uint32_t>(config.training.microbatches);

  std::size_t next = 0;
  const auto apply_through = [&](DirectivePhase last) -> Status {
    for (; next < directives.steps.size(); ++next) {
      const Directive& directive = *directives.steps[next].directive;
      const std::uint32_t origin = directives.steps[next].origin;
      if (phase_of(directive) > last) {
        break;
      }
      const auto apply_one = [&](const auto& what) {
        return apply(std::move(dag), what, directive.from, origin);
      };
      PIPER_ASSIGN(dag, std::visit(apply_one, directive.what));
    }
    return {};
  };
  PIPER_TRY(apply_through(DirectivePhase::place));
  PIPER_ASSIGN(dag, place_the_rest(std::move(dag)));
  PIPER_TRY(apply_through(DirectivePhase::replicate));
  dag = replicate_the_rest(std::move(dag));
  PIPER_TRY(apply_through(DirectivePhase::order));
  return mark_recomputed(std::move(dag), config);
}

}  // namespace piper

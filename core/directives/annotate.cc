#include "core/directives/annotate.h"

#include <algorithm>

#include "core/directives/mesh_ranks.h"
#include "core/directives/sequence.h"

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

}  // namespace

Expected<Annotated> annotate(const Config& config, const ModelGraph& model,
                             const std::vector<Proposal>& proposals) {
  PIPER_TRY(check_claims(config, proposals));
  Annotated dag;
  dag.model = model;
  dag.world = config.mesh.world();
  dag.global_rows = config.training.global_batch_size;
  PIPER_ASSIGN(const Sequence directives, sequence(proposals));
  dag.origins = directives.origins;
  dag.microbatches = static_cast<std::uint32_t>(config.training.microbatches);

  auto next = directives.steps.begin();
  for (const DirectiveKind* kind : kinds_by_phase()) {
    for (; next != directives.steps.end() && kind_of(*next->directive).phase <= kind->phase;
         ++next) {
      PIPER_ASSIGN(dag, apply(std::move(dag), *next->directive, next->origin));
    }
    if (kind->complete != nullptr) {
      PIPER_ASSIGN(dag, kind->complete(std::move(dag), config));
    }
  }
  return dag;
}

}  // namespace piper

#include "core/directives/replicate.h"

namespace piper {

Expected<Annotated> apply(Annotated dag, const ReplicateDirective& replicate,
                          const Provenance& from, std::uint32_t origin) {
  PIPER_TRY(
      check_ranks(replicate.ranks, dag.world, from, "replicate " + to_string(replicate.filter)));
  PIPER_ASSIGN(const std::vector<RegionId> regions,
               select_regions(dag, replicate.filter, from, "replicate"));
  for (const RegionId region : regions) {
    const std::optional<Annotated::Placement>& place = dag.placement[index(region)];
    if (!place || place->ranks != replicate.ranks) {
      Diagnostic wrong = error("replicate.place",
                               from.plugin + ": replicate " + to_string(replicate.filter) + ": " +
                                   describe(dag.model, region) +
                                   (place ? " is placed on other ranks" : " is not placed"),
                               from.where);
      if (place) {
        const Provenance& placer = dag.origins[place->origin];
        wrong.note("placed by " + placer.plugin, placer.where);
      }
      return fail(std::move(wrong));
    }
    if (const auto& old = dag.replication[index(region)]) {
      Diagnostic conflict = error(
          "replicate.conflict",
          from.plugin + ": " + describe(dag.model, region) + " is already replicated", from.where);
      conflict.note("first replicated by " + dag.origins[old->origin].plugin,
                    dag.origins[old->origin].where);
      return fail(std::move(conflict));
    }
  }

  for (const RegionId region : regions) {
    dag.replication[index(region)] =
        Annotated::Replication{replicate.ranks, replicate.reduce_stream, origin};
  }
  return dag;
}

}  // namespace piper

#include "core/directives/place.h"

namespace piper {

Expected<Annotated> apply(Annotated dag, const PlaceDirective& place, const Provenance& from,
                          std::uint32_t origin) {
  PIPER_TRY(check_ranks(place.ranks, dag.world, from, "place " + to_string(place.filter)));
  PIPER_ASSIGN(const std::vector<RegionId> regions,
               select_regions(dag, place.filter, from, "place"));
  if (place.stream != "compute") {
    return fail(error("place.stream",
                      from.plugin + ": place " + to_string(place.filter) +
                          ": expected stream 'compute' (one compute stream a rank), got '" +
                          place.stream + "'",
                      from.where));
  }
  for (const RegionId region : regions) {
    const std::optional<Annotated::Placement>& old = dag.placement[index(region)];
    if (old && old->ranks != place.ranks) {
      const Provenance& first = dag.origins[old->origin];
      Diagnostic conflict = error("place.conflict",
                                  from.plugin + ": " + describe(dag.model, region) +
                                      " is already placed; cannot place it again",
                                  from.where);
      conflict.note("first placed by " + first.plugin, first.where);
      return fail(std::move(conflict));
    }
  }

  for (const RegionId region : regions) {
    dag.placement[index(region)] = Annotated::Placement{place.ranks, origin};
  }
  return dag;
}

}  // namespace piper

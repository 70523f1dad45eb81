#include "core/directives/place.h"

#include <algorithm>

namespace piper {
namespace {

bool share(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b) {
  return a.empty() || b.empty() ||
         std::find_first_of(a.begin(), a.end(), b.begin(), b.end()) != a.end();
}

}  // namespace

Expected<Annotated> apply(Annotated dag, const PlaceDirective& place, const Provenance& from,
                          std::uint32_t origin) {
  PIPER_TRY(check_ranks(place.ranks, dag.world, from, "place " + to_string(place.filter)));
  std::vector<std::uint32_t> microbatches;
  PIPER_ASSIGN(const std::vector<RegionId> regions,
               select_regions(dag, place.filter, from, "place", &microbatches));
  if (place.stream != "compute") {
    return fail(error("place.stream",
                      from.plugin + ": place " + to_string(place.filter) +
                          ": expected stream 'compute' (one compute stream a rank), got '" +
                          place.stream + "'",
                      from.where));
  }
  for (const RegionId region : regions) {
    for (const Annotated::Placement& old : dag.placements[index(region)]) {
      if (!share(old.microbatches, microbatches) ||
          (old.ranks == place.ranks && old.microbatches == microbatches)) {
        continue;
      }
      const Provenance& first = dag.origins[old.origin];
      Diagnostic conflict = error("place.conflict",
                                  from.plugin + ": " + describe(dag.model, region) +
                                      " is already placed; cannot place it again",
                                  from.where);
      conflict.note("first placed by " + first.plugin, first.where);
      return fail(std::move(conflict));
    }
  }

  for (const RegionId region : regions) {
    std::vector<Annotated::Placement>& places = dag.placements[index(region)];
    const bool known =
        std::any_of(places.begin(), places.end(), [&](const Annotated::Placement& p) {
          return p.ranks == place.ranks && p.microbatches == microbatches;
        });
    if (!known) {
      places.push_back({place.ranks, microbatches, origin});
      std::sort(places.begin(), places.end(),
                [](const auto& a, const auto& b) { return a.microbatches < b.microbatches; });
    }
  }
  return dag;
}

}  // namespace piper

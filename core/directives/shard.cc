#include "core/directives/shard.h"

namespace piper {

Expected<Annotated> apply(Annotated dag, const ShardDirective& shard, const Provenance& from,
                          std::uint32_t origin) {
  const std::string what = "shard " + to_string(shard.filter);
  PIPER_TRY(check_family(shard.family, dag.world, from, what));
  PIPER_ASSIGN(const std::vector<RegionId> regions,
               select_regions(dag, shard.filter, from, "shard"));
  for (const RegionId region : regions) {
    for (const Annotated::Placement& place : dag.placements[index(region)]) {
      if (!groups_in(shard.family, place.ranks)) {
        Diagnostic wrong = error("shard.family",
                                 from.plugin + ": " + what + ": the groups do not partition the " +
                                     "place of " + describe(dag.model, region),
                                 from.where);
        const Provenance& placer = dag.origins[place.origin];
        wrong.note("placed by " + placer.plugin, placer.where);
        return fail(std::move(wrong));
      }
    }
    if (const std::uint32_t old = dag.sharding[index(region)]; old != Annotated::kNothing) {
      const Provenance& first = dag.origins[dag.shardings[old].origin];
      Diagnostic conflict = error(
          "shard.conflict",
          from.plugin + ": " + describe(dag.model, region) + " is already sharded", from.where);
      conflict.note("first sharded by " + first.plugin, first.where);
      return fail(std::move(conflict));
    }
  }

  for (const RegionId region : regions) {
    dag.sharding[index(region)] = static_cast<std::uint32_t>(dag.shardings.size());
  }
  dag.shardings.push_back({shard, origin});
  return dag;
}

}  // namespace piper

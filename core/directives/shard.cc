#include "core/directives/shard.h"

#include "core/directives/stream_name.h"

namespace piper {

Expected<Annotated> apply(Annotated dag, const ShardDirective& shard, const Provenance& from,
                          std::uint32_t origin) {
  const std::string what = "shard " + to_string(shard.filter);
  PIPER_TRY(check_stream(shard.stream, "stream", from, what));
  PIPER_TRY(check_family(shard.family, dag.world, from, what));
  PIPER_ASSIGN(const std::vector<RegionId> regions,
               select_regions(dag, shard.filter, from, "shard"));
  PIPER_TRY(check_partition(dag, regions, shard.family, from, what, "shard.family"));
  for (const RegionId region : regions) {
    if (const std::uint32_t old = dag.sharding[index(region)]; old != Annotated::kNothing) {
      return fail(
          already(dag, region, "sharded", "shard.conflict", from, dag.shardings[old].origin));
    }
  }

  for (const RegionId region : regions) {
    dag.sharding[index(region)] = static_cast<std::uint32_t>(dag.shardings.size());
  }
  dag.shardings.push_back({shard, origin});
  return dag;
}

}  // namespace piper

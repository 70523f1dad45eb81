#include "core/directives/replicate.h"

#include "core/directives/stream_name.h"

namespace piper {
namespace {

Status check_policy(const ReplicateDirective& what, const Provenance& from) {
  if ((what.shard_params && !what.shard_grads) || (what.shard_grads && !what.shard_optimizer)) {
    return fail(error("replicate.shard",
                      from.plugin + ": replicate " + to_string(what.filter) + ": expected " +
                          (what.shard_grads ? "shard_optimizer" : "shard_grads") + " with " +
                          (what.shard_grads ? "shard_grads" : "shard_params"),
                      from.where));
  }
  return {};
}

}  // namespace

Expected<Annotated> apply(Annotated dag, const ReplicateDirective& replicate,
                          const Provenance& from, std::uint32_t origin) {
  const std::string what = "replicate " + to_string(replicate.filter);
  PIPER_TRY(check_policy(replicate, from));
  PIPER_TRY(check_stream(replicate.reduce_stream, "reduce_stream", from, what));
  PIPER_TRY(check_stream(replicate.gather_stream, "gather_stream", from, what));
  PIPER_TRY(check_family(replicate.family, dag.world, from, what));
  PIPER_ASSIGN(const std::vector<RegionId> regions,
               select_regions(dag, replicate.filter, from, "replicate"));
  PIPER_TRY(check_partition(dag, regions, replicate.family, from, what, "replicate.family"));
  for (const RegionId region : regions) {
    if (const std::uint32_t old = dag.replication[index(region)]; old != Annotated::kNothing) {
      return fail(already(dag, region, "replicated", "replicate.conflict", from,
                          dag.replications[old].origin));
    }
  }

  for (const RegionId region : regions) {
    dag.replication[index(region)] = static_cast<std::uint32_t>(dag.replications.size());
  }
  dag.replications.push_back({replicate, origin});
  return dag;
}

}  // namespace piper

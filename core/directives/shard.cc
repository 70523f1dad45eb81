#include "core/directives/shard.h"

#include "core/directives/annotated.h"
#include "core/directives/directive.h"
#include "core/directives/stream_name.h"
#include "core/directives/toml/table.h"

namespace piper {
namespace {

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
    dag.sharding.edit(index(region)) = static_cast<std::uint32_t>(dag.shardings.size());
  }
  dag.shardings.push_back({shard, origin});
  return dag;
}

void key(const Annotated& dag, RegionId region, std::vector<std::uint32_t>& key) {
  key.push_back(dag.sharding[index(region)]);
}

std::string mark(const Annotated& dag, RegionId region) {
  const std::uint32_t sharding = dag.sharding[index(region)];
  return sharding == Annotated::kNothing ? "" : " sharded " + std::to_string(sharding);
}

std::string lines(const Annotated& dag) {
  std::string text;
  for (std::uint32_t s = 0; s < dag.shardings.size(); ++s) {
    const Annotated::Sharding& sharding = dag.shardings[s];
    text += "sharded " + std::to_string(s) + ": " +
            to_string(Directive{sharding.what, dag.origins[sharding.origin]}) + "\n";
  }
  return text;
}

std::string text(const ShardDirective& shard) {
  return "shard " + to_string(shard.filter) + " " + to_string(shard.family) +
         " stream=" + shard.stream;
}

void claim(const ShardDirective&, const Provenance& from, Claims& claims) {
  if (claims.mesh.size("ep") > 1) {
    claims.add(Claim::Kind::axis, "ep", from);
  }
}

}  // namespace

template <>
const Descriptor<ShardDirective>& descriptor() {
  static const Descriptor<ShardDirective> shard{
      .kind = {.op = "shard",
               .phase = DirectivePhase::shard,
               .keys = {filter_key("filter!"), family_key("family"),
                        plain_key("stream", Key::Type::text, "where the all-to-alls run")},
               .read =
                   [](DirectiveTable& table, Directive& into) {
                     ShardDirective what{table.filter(), table.family()};
                     what.stream = table.text("stream", what.stream);
                     into.what = std::move(what);
                   },
               .distinguishes = Distinguishes::regions,
               .key = key,
               .mark = mark,
               .lines = lines},
      .text = text,
      .apply = apply,
      .claim = claim};
  return shard;
}

}  // namespace piper

#include "core/directives/replicate.h"

#include "core/directives/annotated.h"
#include "core/directives/directive.h"
#include "core/directives/stream_name.h"
#include "core/directives/toml/table.h"

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
    dag.replication.edit(index(region)) = static_cast<std::uint32_t>(dag.replications.size());
  }
  dag.replications.push_back({replicate, origin});
  return dag;
}

// What nobody replicates lives on its place, unsharded.
Expected<Annotated> complete(Annotated dag, const Config&) {
  const auto plain = static_cast<std::uint32_t>(dag.replications.size());
  bool used = false;
  for (std::uint32_t r = 0; r < dag.model.regions.size(); ++r) {
    std::uint32_t& replication = dag.replication.edit(r);
    used = used || replication == Annotated::kNothing;
    replication = replication == Annotated::kNothing ? plain : replication;
  }
  if (used) {
    dag.replications.push_back({ReplicateDirective{}, 0});
  }
  return dag;
}

void key(const Annotated& dag, RegionId region, std::vector<std::uint32_t>& key) {
  key.push_back(dag.replication[index(region)]);
}

// `zero 2 on reduce`: the stage in the literature's numbering, 0 where nothing is sharded.
std::string mark(const Annotated& dag, RegionId region) {
  const std::uint32_t replication = dag.replication[index(region)];
  if (replication == Annotated::kNothing) {
    return "";
  }
  const ReplicateDirective& what = dag.replications[replication].what;
  const int stage = what.shard_params ? 3 : what.shard_grads ? 2 : what.shard_optimizer ? 1 : 0;
  return " replicated zero " + std::to_string(stage) + " on " + what.reduce_stream;
}

std::string name(Span span) {
  return span == Span::chain ? "chain" : "step";
}

std::string text(const ReplicateDirective& what) {
  std::string text = "replicate " + to_string(what.filter) + " " + to_string(what.family) +
                     " reduce_stream=" + what.reduce_stream;
  if (what.shard_optimizer) {
    text += " gather_stream=" + what.gather_stream + " shard=optimizer";
    text += what.shard_grads ? "+grads" : "";
    text += what.shard_params ? "+params" : "";
    text += " prefetch=" + std::to_string(what.prefetch) +
            " keep_gathered=" + name(what.keep_gathered) + " reduce=" + name(what.reduce);
  }
  return text + (what.bucket_bytes > 0 ? " bucket_bytes=" + std::to_string(what.bucket_bytes) : "");
}

ReplicateDirective from_table(DirectiveTable& table) {
  const auto span = [&](const char* key) {
    return table.text(key, "chain") == "step" ? Span::step : Span::chain;
  };
  ReplicateDirective what;
  what.filter = table.filter();
  what.family = table.family();
  what.reduce_stream = table.text("reduce_stream", what.reduce_stream);
  what.gather_stream = table.text("gather_stream", what.gather_stream);
  what.shard_optimizer = table.flag("shard_optimizer");
  what.shard_grads = table.flag("shard_grads");
  what.shard_params = table.flag("shard_params");
  what.bucket_bytes = table.bytes("bucket_bytes");
  what.prefetch = table.number("prefetch", what.prefetch);
  what.keep_gathered = span("keep_gathered");
  what.reduce = span("reduce");
  return what;
}

}  // namespace

template <>
const Descriptor<ReplicateDirective>& descriptor() {
  using Type = Key::Type;
  static const Descriptor<ReplicateDirective> replicate{
      .kind =
          {.op = "replicate",
           .phase = DirectivePhase::replicate,
           .keys = {filter_key("filter!"), family_key("family"),
                    plain_key("shard_optimizer", Type::boolean,
                              "shard the optimizer's state (ZeRO 1)"),
                    plain_key("shard_grads", Type::boolean, "and gradients (ZeRO 2)"),
                    plain_key("shard_params", Type::boolean, "and parameters (ZeRO 3)"),
                    key_of(
                        "bucket_bytes", DirectiveKey::Form::bytes,
                        "bytes of parameters in a bucket, as a number or `\"25MiB\"`; not given: "
                        "a bucket a chunk"),
                    plain_key("reduce_stream", Type::text, "where gradients are reduced"),
                    plain_key("gather_stream", Type::text, "where parameters are gathered"),
                    plain_key("prefetch", Type::integer, "chains that are gathered ahead", kIndex),
                    choice_key("keep_gathered", {"chain", "step"},
                               "how long gathered parameters are kept"),
                    choice_key("reduce", {"chain", "step"}, "how often gradients are reduced")},
           .read = [](DirectiveTable& table, Directive& into) { into.what = from_table(table); },
           .complete = complete,
           .distinguishes = Distinguishes::regions,
           .key = key,
           .mark = mark},
      .text = text,
      .apply = apply};
  return replicate;
}

}  // namespace piper

// Warns of what it sees, so that a test can read it; proposes a little of everything.
#include <piper/strategy.hpp>

#include <cstdlib>
#include <string>

namespace {

using piper::sdk::Filter;
using piper::sdk::Job;
using piper::sdk::Span;
using piper::sdk::view;

std::string number(std::int64_t value) {
  return std::to_string(value);
}

template <typename T, typename Print>
std::string list(const Span<T>& items, Print&& print) {
  std::string text;
  for (const T& item : items) {
    text += (text.empty() ? "" : " ") + print(item);
  }
  return text;
}

std::string describe(const Job& job, const piper_region_info& region) {
  const auto tags = list(Span<piper_tag_value>(region.tags), [&](const piper_tag_value& tag) {
    return std::string(view(job.tag_names()[tag.name])) + "=" + number(tag.index);
  });
  const auto parameters =
      list(Span<std::uint32_t>(region.parameters), [&](std::uint32_t parameter) {
        return std::string(view(job.parameters()[parameter].name)) + ":" +
               number(job.parameters()[parameter].bytes);
      });
  return "{" + tags + "} (" + parameters + ") flops " + number(region.flops.per_row) + "r+" +
         number(region.flops.fixed) + " from " +
         number(static_cast<std::int64_t>(Span<std::uint32_t>(region.inputs).size()));
}

void plan(Job& job) {
  job.warn("mesh", "world " + number(job.world()) + ", " +
                       list(job.axes(),
                            [](const piper_axis& axis) {
                              return std::string(view(axis.name)) + "=" + number(axis.size);
                            }) +
                       ", microbatches " + number(job.microbatches()) + ", rows " +
                       number(job.rows()) + " of " + number(job.global_rows()));
  for (const piper_region_info& region : job.regions()) {
    job.warn("region", describe(job, region), region.where);
  }
  const auto depth = job.get_i64("depth");
  job.warn("option",
           "depth " + number(depth.value) + (job.written("depth") ? " written" : " default"),
           depth.where);
  for (const auto& name : job.get_str_list("names")) {
    job.warn("option", "name " + std::string(name.value), name.where);
  }
  struct {
    piper_job known;
    std::int64_t tomorrow[4];
  } larger{};
  larger.known.struct_size = sizeof(larger);
  job.check(job.host()->graph->job(job.ctx(), &larger.known));
  job.warn("size", std::string("of a larger struct, the host fills ") +
                       (larger.known.struct_size == sizeof(piper_job) ? "what it knows" : "all"));
  job.claim_axis(job.get_str("axis").value);
  job.split_backward(Filter().present("layer").absent("EP"));
  job.tag(Filter().in("layer", {0, 2}).range("layer", 0, 1), "EVEN", 7);
  job.tag(Filter(), "THIRD", piper::sdk::Partition{PIPER_BY_COUNT, 3, "", {}});
  job.tag(Filter(), "CUT", piper::sdk::Partition{PIPER_BY_BOUNDARIES, 0, "", {1}});
  job.place(Filter().equals("EVEN", 7), job.of({1, 0}, 2), "side");
  piper_replicate policy{};
  policy.shard = PIPER_SHARD_OPTIMIZER | PIPER_SHARD_GRADS | PIPER_SHARD_PARAMS;
  policy.present = PIPER_REPLICATE_PREFETCH | PIPER_REPLICATE_BUCKET_BYTES;
  policy.prefetch = 2;
  policy.bucket_bytes = 4096;
  policy.keep_gathered = PIPER_EACH_STEP;
  job.replicate(Filter().absent("EP"), job.of({0, 1}, 1), policy);
  job.shard(Filter().present("EP"), job.along({"dp"}), "ep");
  job.order({{Filter().equals("MB", 0).pass(PIPER_FORWARD)},
             {Filter().equals("MB", 1).pass(PIPER_FORWARD).pass(PIPER_BACKWARD)}});
  job.order_chain(job.at({}),
                  {{0, 0, PIPER_FORWARD, 0}, {0, 1, PIPER_FORWARD, 1}, {0, 0, PIPER_BACKWARD, 1}});
  job.split(Filter(), "MB", 3);
  job.recompute(Filter().present("layer"));
}

}  // namespace

PIPER_STRATEGY(plan)

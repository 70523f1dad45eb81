// Data parallelism in the four stages of ZeRO (Rajbhandari et al. 2020, arXiv 1910.02054): how much
// of what replicas hold is sharded over them. Piper's planner cuts buckets, finds the chains of
// their uses in whatever order other strategies give, and puts gathers and reductions around them.
#include <piper/strategy.hpp>

#include <string>

namespace zero {
namespace {

using piper::sdk::Job;
using piper::sdk::Option;

constexpr std::uint32_t kShards[] = {
    0, PIPER_SHARD_OPTIMIZER, PIPER_SHARD_OPTIMIZER | PIPER_SHARD_GRADS,
    PIPER_SHARD_OPTIMIZER | PIPER_SHARD_GRADS | PIPER_SHARD_PARAMS};

// One job file serves all stages, so what has no effect in this one is only remarked.
template <typename T>
T effective_from(const Job& job, std::int64_t first, const char* name, const Option<T>& option) {
  const std::int64_t stage = job.get_i64("stage").value;
  if (job.written(name) && stage < first) {
    job.warn(name,
             "option '" + std::string(name) + "' has no effect below stage " +
                 std::to_string(first) + ", got stage " + std::to_string(stage),
             option.where);
  }
  return option.value;
}

std::int32_t span_of(std::string_view name) {
  return name == "step" ? PIPER_EACH_STEP : PIPER_EACH_CHAIN;
}

void plan(Job& job) {
  const auto text = [&](std::int64_t first, const char* name) {
    return effective_from(job, first, name, job.get_str(name));
  };
  const auto number = [&](std::int64_t first, const char* name) {
    return effective_from(job, first, name, job.get_i64(name));
  };
  piper_replicate what{};
  what.shard = kShards[number(0, "stage")];
  what.present = PIPER_REPLICATE_PREFETCH | PIPER_REPLICATE_BUCKET_BYTES;
  what.bucket_bytes = static_cast<std::uint64_t>(number(0, "bucket_bytes"));
  what.reduce_stream = piper::sdk::to_abi(text(0, "reduce_stream"));
  what.gather_stream = piper::sdk::to_abi(text(1, "gather_stream"));
  what.reduce = span_of(text(2, "reduce"));
  what.keep_gathered = span_of(text(3, "keep_gathered"));
  what.prefetch = static_cast<std::uint32_t>(number(3, "prefetch"));

  const std::string_view axis = text(0, "axis");
  if (what.shard != 0 && job.written("axis") && job.axis(axis).size == 1) {
    job.warn("axis", "nothing to shard over: [mesh] " + std::string(axis) + " is 1",
             job.get_str("axis").where);
  }
  job.claim_axis(axis);
  job.replicate({}, job.along({axis}), what);
}

}  // namespace
}  // namespace zero

PIPER_STRATEGY(zero::plan)

// Data parallelism in the four stages of ZeRO (Rajbhandari et al. 2020, arXiv 1910.02054): how much
// of what replicas hold is sharded over them. Piper's planner cuts buckets, finds the chains of
// their uses in whatever order other strategies give, and puts gathers and reductions around them.
#include <piper/strategy.hpp>

#include <string>

namespace zero {
namespace {

using piper::sdk::Job;

constexpr std::uint32_t kShards[] = {
    0, PIPER_SHARD_OPTIMIZER, PIPER_SHARD_OPTIMIZER | PIPER_SHARD_GRADS,
    PIPER_SHARD_OPTIMIZER | PIPER_SHARD_GRADS | PIPER_SHARD_PARAMS};

// One job file serves all stages, so what has no effect in this one is only remarked.
void remark_below(const Job& job, std::int64_t stage, std::int64_t first, const char* option) {
  if (job.written(option) && stage < first) {
    job.warn(option, "option '" + std::string(option) + "' has no effect below stage " +
                         std::to_string(first) + ", got stage " + std::to_string(stage));
  }
}

std::int32_t span_of(const Job& job, const char* option) {
  return job.get_str(option).value == "step" ? PIPER_EACH_STEP : PIPER_EACH_CHAIN;
}

void plan(Job& job) {
  const std::int64_t stage = job.get_i64("stage").value;
  remark_below(job, stage, 1, "gather_stream");
  remark_below(job, stage, 2, "reduce");
  remark_below(job, stage, 3, "keep_gathered");
  remark_below(job, stage, 3, "prefetch");

  const std::string_view axis = job.get_str("axis").value;
  piper_replicate what{};
  what.shard = kShards[stage];
  what.present = PIPER_REPLICATE_PREFETCH | PIPER_REPLICATE_BUCKET_BYTES;
  what.prefetch = static_cast<std::uint32_t>(job.get_i64("prefetch").value);
  what.bucket_bytes = static_cast<std::uint64_t>(job.get_i64("bucket_bytes").value);
  what.gather_stream = piper::sdk::to_abi(job.get_str("gather_stream").value);
  what.reduce_stream = piper::sdk::to_abi(job.get_str("reduce_stream").value);
  what.keep_gathered = span_of(job, "keep_gathered");
  what.reduce = span_of(job, "reduce");

  job.claim_axis(axis);
  job.replicate({}, job.along({axis}), what);
}

}  // namespace
}  // namespace zero

PIPER_STRATEGY(zero::plan)

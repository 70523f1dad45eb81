// Parameters of the selected regions live on all ranks of their places, and each micro-batch's
// gradient is reduced over them; optionally sharded (ZeRO, Rajbhandari et al., arXiv 1910.02054).
//     region 3 PP=0 @0,2          ->   region 3 PP=0 @0,2 replicated zero 2 on reduce
// Runs after place. What nothing replicates, core replicates on its place, unsharded.
// Errors: replicate.family (no partition of a place by the family), replicate.conflict,
// replicate.shard (parameters sharded without gradients, gradients without the optimizer),
// directive.family, directive.ranks, and those of select_regions.
#pragma once

#include <cstdint>
#include <string>

#include "core/directives/descriptor.h"

namespace piper {

// How long a thing lives: through one chain of uses of a bucket, or through the step.
enum class Span : std::uint8_t { chain, step };

// What is sharded, is sharded over each group of `family`.
struct ReplicateDirective {
  Filter filter;
  Family family;
  std::string reduce_stream = "reduce";
  std::string gather_stream = "gather";
  bool shard_optimizer = false;    // ZeRO-1
  bool shard_grads = false;        // ZeRO-2; with shard_optimizer
  bool shard_params = false;       // ZeRO-3; with shard_grads
  std::uint64_t bucket_bytes = 0;  // of parameters; 0: a bucket a stage
  std::uint32_t prefetch = 1;      // chains gathered ahead of the one in use
  Span keep_gathered = Span::chain;
  Span reduce = Span::chain;
};
template <>
const Descriptor<ReplicateDirective>& descriptor();

}  // namespace piper

// What a rank holds of a parameter, from the plan alone: every process knows it of every rank.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/plan/plan.h"

namespace piper {

// Kept of a parameter between steps. All but the value are in gradient_dtype of the parameter's.
enum class Kept : std::uint8_t {
  value,          // as the model reads it
  master,         // float32 or wider; the value itself where that is wide enough
  gradient,       // of the last step, reduced and unclipped: where Engine::keep_gradients says so
  first_moment,   // momentum, exp_avg
  second_moment,  // exp_avg_sq
};

// Elements of a bucket.
struct Elements {
  std::int64_t begin = 0, count = 0;
  std::int64_t end() const { return begin + count; }
  bool operator==(const Elements&) const = default;
};
Elements common(Elements a, Elements b);  // none: count 0

// Ranks that share a bucket, a part each, and which part is one's own.
struct Share {
  std::vector<std::uint32_t> ranks;
  std::uint32_t index = 0;
};
// Of `rank`, which has a home of the bucket; alone where nothing is sharded.
Share share_of(const Plan& plan, BucketId bucket, std::uint32_t rank);

// What such a rank holds of the bucket, padding among it.
Elements held(const Bucket& bucket, const Share& share, Kept what);

// Where a parameter is.
struct BucketSeat {
  BucketId bucket = none<BucketId>();
  std::int64_t offset = 0;  // of its first element in the bucket
};
// None: it has no home on `rank`.
std::optional<BucketSeat> find(const Plan& plan, const ModelGraph& model, ParameterId id,
                               std::uint32_t rank);

// All ranks of the plan, ascending.
std::vector<std::uint32_t> ranks_of(const Plan& plan);

}  // namespace piper

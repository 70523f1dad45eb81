// Parameters of all ranks: flat storage a bucket, the model's parameters as views of it, or of what
// is gathered of it.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "core/plan/plan.h"
#include "runtime/tasks/rank.h"

namespace piper {

using AllRanks = std::vector<std::unique_ptr<Rank>>;

// Allocates what `rank` keeps of the buckets that live on it, charged to its account, and points
// the parameters of its model and their gradients into that, or into what a chain of uses will
// have. Values are not set.
void place_parameters(const Plan& plan, Rank& rank);

// A function of seed and name: made once, whoever holds it.
void initialise_parameters(const AllRanks& ranks, std::uint64_t seed);

// A parameter, its master value or its last gradient, as rank `rank` has it: a view, or, where it
// shares the bucket with others, a copy that is put together from their parts. Undefined where it
// has no home there, or no such thing is kept.
at::Tensor parameter_on(const AllRanks& ranks, std::uint32_t rank, ParameterId id,
                        at::Tensor BucketState::*what);

// On every home: the parameter and its master value.
void set_parameter(const AllRanks& ranks, ParameterId id, const at::Tensor& value);

}  // namespace piper

// Parameters of all ranks: flat storage a bucket, the model's parameters as views of it.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "core/plan/plan.h"
#include "runtime/tasks/rank.h"

namespace piper {

// Allocates the buckets that live on `rank`, charged to its account, and points the parameters of
// its model and their gradients into them. Values are not set.
void place_parameters(const Plan& plan, Rank& rank);

// A function of seed and name: made once, whoever holds it.
void initialise_parameters(const std::vector<std::unique_ptr<Rank>>& ranks, std::uint64_t seed);

// What a rank holds of a parameter: views, undefined where it has no home there.
struct ParameterViews {
  at::Tensor value, master, kept;
};
ParameterViews views_of(const Rank& rank, ParameterId id);

// On one rank: the parameter and its master value.
void set_parameter(Rank& rank, ParameterId id, const at::Tensor& value);

}  // namespace piper

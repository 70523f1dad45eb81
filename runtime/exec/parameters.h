// Parameters of the local ranks: flat storage a bucket, the model's parameters as views of it, or of
// what is gathered of it.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "core/plan/plan.h"
#include "runtime/backend/backend.h"
#include "runtime/exec/engine.h"
#include "runtime/tasks/parts.h"
#include "runtime/tasks/rank.h"

namespace piper {

using LocalRanks = std::vector<std::unique_ptr<Rank>>;

// Allocates what `rank` keeps of the buckets that live on it, charged to its account, and points
// the parameters of its model and their gradients into that, or into what a chain of uses will
// have. Values are not set.
void place_parameters(const Plan& plan, Rank& rank);

// A function of seed and name: made once, whoever holds it.
void initialise_parameters(const Plan& plan, const LocalRanks& ranks, std::uint64_t seed);

// Engine::parts, of one local rank.
std::vector<ParameterPart> parts_of(const Rank& rank, Kept what);

// Engine::set_parameter, on the local ranks.
void set_parameter(const Plan& plan, const LocalRanks& ranks, ParameterId id,
                   const at::Tensor& value);

// Engine::gather, in pieces of at most `piece_bytes`.
at::Tensor gather(const Plan& plan, const LocalRanks& ranks, Backend& backend, Kept what,
                  ParameterId id, std::uint32_t home, std::uint32_t to, std::int64_t piece_bytes);

}  // namespace piper

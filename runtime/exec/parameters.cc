#include "runtime/exec/parameters.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

namespace piper {
namespace {

// A parameter's part of a flat tensor of its bucket.
at::Tensor part(const at::Tensor& flat, std::int64_t offset, const Parameter& parameter) {
  return flat.narrow(0, offset, parameter.elements()).view(parameter.shape);
}

void place(BucketState& state, Rank& rank) {
  const Bucket& bucket = *state.bucket;
  const at::ScalarType wide = to_torch(gradient_dtype(bucket.dtype));
  {
    const Charge charge(Holding::parameter);
    state.value = at::empty({bucket.elements}, to_torch(bucket.dtype));
  }
  if (!bucket.frozen) {
    const Charge charge(Holding::gradient);
    state.gradient = at::zeros({bucket.elements}, wide);
  }
  const Charge charge(Holding::optimizer);
  const bool narrow = gradient_dtype(bucket.dtype) != bucket.dtype;
  state.master = narrow && !bucket.frozen ? at::empty({bucket.elements}, wide) : state.value;

  std::int64_t offset = 0;
  for (const ParameterId id : bucket.parameters) {
    const Parameter& parameter = rank.model.graph.parameter(id);
    at::Tensor& leaf = *rank.model.parameters[index(id)];
    leaf = part(state.value, offset, parameter).detach();
    if (!bucket.frozen) {
      leaf.set_requires_grad(true);
      leaf.mutable_grad() = part(state.gradient, offset, parameter);
      state.accumulators.push_back(torch::autograd::impl::grad_accumulator(leaf));
    }
    offset += parameter.elements();
  }
  PIPER_CHECK(offset == bucket.elements, "a bucket's size is not that of its parameters");
}

}  // namespace

void place_parameters(const Plan& plan, Rank& rank) {
  const Charge charge(rank.account.get(), Holding::parameter);
  rank.buckets.resize(plan.buckets.size());
  for (const BucketId id : plan.programs[plan.seat(rank.number).program].buckets) {
    auto state = std::make_unique<BucketState>();
    state->bucket = &plan.buckets[index(id)];
    place(*state, rank);
    rank.buckets[index(id)] = std::move(state);
  }
}

void initialise_parameters(const std::vector<std::unique_ptr<Rank>>& ranks, std::uint64_t seed) {
  const LiveModel& model = ranks.front()->model;
  for (std::uint32_t i = 0; i < model.graph.parameters.size(); ++i) {
    const ParameterId id{i};
    const Parameter& parameter = model.graph.parameter(id);
    at::Tensor value;
    for (const std::unique_ptr<Rank>& rank : ranks) {
      if (!rank->model.parameters[i]->defined()) {
        continue;
      }
      if (!value.defined()) {
        value = initial_value(model.inits[i], parameter.name, parameter.shape,
                              to_torch(parameter.dtype), seed);
      }
      set_parameter(*rank, id, value);
    }
  }
}

ParameterViews views_of(const Rank& rank, ParameterId id) {
  for (const std::unique_ptr<BucketState>& state : rank.buckets) {
    if (!state) {
      continue;
    }
    std::int64_t offset = 0;
    for (const ParameterId held : state->bucket->parameters) {
      const Parameter& parameter = rank.model.graph.parameter(held);
      if (held == id) {
        return {part(state->value, offset, parameter), part(state->master, offset, parameter),
                state->kept.defined() ? part(state->kept, offset, parameter) : at::Tensor()};
      }
      offset += parameter.elements();
    }
  }
  return {};
}

void set_parameter(Rank& rank, ParameterId id, const at::Tensor& value) {
  const ParameterViews views = views_of(rank, id);
  if (!views.value.defined()) {
    return;
  }
  PIPER_CHECK(value.sizes() == views.value.sizes(),
              "a parameter is set to a value of another shape");
  views.value.copy_(value.detach());
  if (views.master.data_ptr() != views.value.data_ptr()) {
    views.master.copy_(value.detach());
  }
}

}  // namespace piper

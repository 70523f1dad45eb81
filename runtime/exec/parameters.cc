#include "runtime/exec/parameters.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

#include "runtime/tasks/site.h"

namespace piper {
namespace {

// A parameter's part of a flat tensor of its bucket.
at::Tensor part(const at::Tensor& flat, std::int64_t offset, const Parameter& parameter) {
  return flat.narrow(0, offset, parameter.elements()).view(parameter.shape);
}

// Who shares the bucket with `rank`, by the collectives of the plan: nobody where it has none.
Share share_of(const Plan& plan, BucketId bucket, std::uint32_t rank) {
  for (const Task& task : plan.programs[plan.seat(rank).program].tasks) {
    if (task.bucket == bucket && (task.op == Op::all_gather || task.op == Op::reduce_scatter)) {
      return group_of(plan.communicators[index(task.communicator)], rank);
    }
  }
  return {{rank}, 0};
}

// The model's parameters and their gradients, in memory that stays or comes and goes.
void point(BucketState& state, Rank& rank) {
  const Bucket& bucket = *state.bucket;
  std::int64_t offset = 0;
  for (const ParameterId id : bucket.parameters) {
    const Parameter& parameter = rank.model.graph.parameter(id);
    at::Tensor& leaf = *rank.model.parameters[index(id)];
    leaf = state.gathered ? state.gathered->tensor(offset, parameter.shape)
                          : part(state.value, offset, parameter).detach();
    if (!bucket.frozen) {
      leaf.set_requires_grad(true);
      leaf.mutable_grad() = state.full_gradient
                                ? state.full_gradient->tensor(offset, parameter.shape)
                                : part(state.gradient, offset, parameter);
      state.accumulators.push_back(torch::autograd::impl::grad_accumulator(leaf));
    }
    offset += parameter.elements();
  }
  PIPER_CHECK(offset == bucket.elements, "a bucket's size is not that of its parameters");
}

void place(BucketState& state, Rank& rank) {
  const Bucket& bucket = *state.bucket;
  const DType wide = gradient_dtype(bucket.dtype);
  const auto shares = static_cast<std::int64_t>(state.share.ranks.size());
  const std::int64_t elements = bucket.padded_elements() / shares;
  {
    const Charge charge(MemoryKind::parameter);
    state.value = at::zeros({bucket.kept_bytes() / size_of(bucket.dtype)}, to_torch(bucket.dtype));
  }
  state.part = state.value.numel() == elements
                   ? state.value
                   : state.value.narrow(0, state.share.index * elements, elements);
  if (state.value.numel() < bucket.padded_elements()) {
    state.gathered = std::make_unique<LentStorage>(to_torch(bucket.dtype));
  }
  if (bucket.frozen) {
    state.master = state.value;
  } else {
    {
      const Charge charge(MemoryKind::gradient);
      state.gradient = at::zeros({elements}, to_torch(wide));
    }
    if (elements < bucket.padded_elements()) {
      state.full_gradient = std::make_unique<LentStorage>(to_torch(wide));
    }
    const Charge charge(MemoryKind::optimizer);
    state.master = wide != bucket.dtype ? at::zeros({elements}, to_torch(wide)) : state.part;
  }
  point(state, rank);
}

// What a flat tensor of a bucket's state has: elements `begin` and on of the bucket.
std::int64_t begin_of(const BucketState& state, const at::Tensor& flat) {
  return flat.numel() == state.bucket->padded_elements() ? 0 : state.share.index * flat.numel();
}

// Calls both(theirs, ours) with what two flat tensors have in common: elements `begin` and on of
// a bucket, and `offset` and on.
template <typename Both>
void overlap(const at::Tensor& a, std::int64_t begin, const at::Tensor& b, std::int64_t offset,
             Both both) {
  const std::int64_t first = std::max(begin, offset);
  const std::int64_t last = std::min(begin + a.numel(), offset + b.numel());
  if (first < last) {
    both(a.narrow(0, first - begin, last - first), b.narrow(0, first - offset, last - first));
  }
}

struct Found {
  std::size_t bucket;
  std::int64_t offset;  // in it
};

std::optional<Found> find(const Rank& rank, ParameterId id) {
  for (std::size_t b = 0; b < rank.buckets.size(); ++b) {
    if (!rank.buckets[b]) {
      continue;
    }
    std::int64_t offset = 0;
    for (const ParameterId held : rank.buckets[b]->bucket->parameters) {
      if (held == id) {
        return Found{b, offset};
      }
      offset += rank.model.graph.parameter(held).elements();
    }
  }
  return std::nullopt;
}

}  // namespace

void place_parameters(const Plan& plan, Rank& rank) {
  const Charge charge(rank.account.get(), MemoryKind::parameter);
  rank.buckets.resize(plan.buckets.size());
  for (const BucketId id : plan.programs[plan.seat(rank.number).program].buckets) {
    auto state = std::make_unique<BucketState>();
    state->bucket = &plan.buckets[index(id)];
    state->share = share_of(plan, id, rank.number);
    place(*state, rank);
    rank.buckets[index(id)] = std::move(state);
  }
}

void initialise_parameters(const AllRanks& ranks, std::uint64_t seed) {
  const LiveModel& model = ranks.front()->model;
  for (std::uint32_t i = 0; i < model.graph.parameters.size(); ++i) {
    const Parameter& parameter = model.graph.parameters[i];
    set_parameter(ranks, ParameterId{i},
                  initial_value(model.inits[i], parameter.name, parameter.shape,
                                to_torch(parameter.dtype), seed));
  }
}

at::Tensor parameter_on(const AllRanks& ranks, std::uint32_t rank, ParameterId id,
                        at::Tensor BucketState::*what) {
  const std::optional<Found> found = find(*ranks[rank], id);
  if (!found || !((*ranks[rank]->buckets[found->bucket]).*what).defined()) {
    return {};
  }
  const BucketState& state = *ranks[rank]->buckets[found->bucket];
  const Parameter& parameter = ranks[rank]->model.graph.parameter(id);
  if ((state.*what).numel() == state.bucket->padded_elements()) {
    return part(state.*what, found->offset, parameter);
  }
  at::Tensor whole = at::empty({parameter.elements()}, (state.*what).options());
  for (const std::uint32_t other : state.share.ranks) {
    const BucketState& theirs = *ranks[other]->buckets[found->bucket];
    overlap(theirs.*what, begin_of(theirs, theirs.*what), whole, found->offset,
            [](const at::Tensor& from, const at::Tensor& to) { to.copy_(from); });
  }
  return whole.view(parameter.shape);
}

void set_parameter(const AllRanks& ranks, ParameterId id, const at::Tensor& value) {
  for (const std::unique_ptr<Rank>& rank : ranks) {
    const std::optional<Found> found = find(*rank, id);
    if (!found) {
      continue;
    }
    PIPER_CHECK(value.sizes() == at::IntArrayRef(rank->model.graph.parameter(id).shape),
                "a parameter is set to a value of another shape");
    const BucketState& state = *rank->buckets[found->bucket];
    for (const at::Tensor& flat : {state.value, state.master}) {
      overlap(flat, begin_of(state, flat), value.detach().reshape({-1}), found->offset,
              [](const at::Tensor& to, const at::Tensor& from) { to.copy_(from); });
    }
  }
}

}  // namespace piper

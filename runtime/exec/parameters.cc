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
    state.gathered = std::make_unique<LentStorage>(to_torch(bucket.dtype), state.value.device());
  }
  if (bucket.frozen) {
    state.master = state.value;
  } else {
    {
      const Charge charge(MemoryKind::gradient);
      state.gradient = at::zeros({elements}, to_torch(wide));
    }
    if (elements < bucket.padded_elements()) {
      state.full_gradient = std::make_unique<LentStorage>(to_torch(wide), state.value.device());
    }
    const Charge charge(MemoryKind::optimizer);
    state.master = wide != bucket.dtype ? at::zeros({elements}, to_torch(wide)) : state.part;
  }
  point(state, rank);
}

// What a bucket keeps; undefined: nothing of that kind.
const at::Tensor& flat_of(const BucketState& state, Kept what) {
  switch (what) {
    case Kept::value:
      return state.value;
    case Kept::master:
      return state.master;
    case Kept::gradient:
      return state.kept;
    case Kept::first_moment:
      return state.optimizer.first;
    case Kept::second_moment:
      return state.optimizer.second;
  }
  return state.value;
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

void initialise_parameters(const Plan& plan, const LocalRanks& ranks, std::uint64_t seed) {
  const LiveModel& model = ranks.front()->model;
  for (std::uint32_t i = 0; i < model.graph.parameters.size(); ++i) {
    const Parameter& parameter = model.graph.parameters[i];
    set_parameter(plan, ranks, ParameterId{i},
                  initial_value(model.inits[i], parameter.name, parameter.shape,
                                to_torch(parameter.dtype), seed));
  }
}

std::vector<ParameterPart> parts_of(const Rank& rank, Kept what) {
  std::vector<ParameterPart> parts;
  for (const std::unique_ptr<BucketState>& state : rank.buckets) {
    if (!state || !flat_of(*state, what).defined()) {
      continue;
    }
    const at::Tensor& flat = flat_of(*state, what);
    const Elements own = held(*state->bucket, state->share, what);
    PIPER_CHECK(own.count == flat.numel(), "a rank holds other elements than the plan says");
    std::int64_t offset = 0;
    for (const ParameterId parameter : state->bucket->parameters) {
      const std::int64_t elements = rank.model.graph.parameter(parameter).elements();
      if (const Elements here = common(own, {offset, elements}); here.count > 0) {
        parts.push_back(
            {parameter, here.begin - offset, flat.narrow(0, here.begin - own.begin, here.count)});
      }
      offset += elements;
    }
  }
  return parts;
}

void set_parameter(const Plan& plan, const LocalRanks& ranks, ParameterId id,
                   const at::Tensor& value) {
  for (const std::unique_ptr<Rank>& rank : ranks) {
    const Parameter& parameter = rank->model.graph.parameter(id);
    PIPER_CHECK(value.sizes() == at::IntArrayRef(parameter.shape),
                "a parameter is set to a value of another shape");
    const auto seat = find(plan, rank->model.graph, id, rank->number);
    if (!seat) {
      continue;
    }
    const BucketState& state = *rank->buckets[index(seat->bucket)];
    const at::Tensor flat = value.detach().reshape({-1});
    for (const Kept what : {Kept::value, Kept::master}) {
      const Elements own = held(*state.bucket, state.share, what);
      const Elements here = common(own, {seat->offset, parameter.elements()});
      flat_of(state, what)
          .narrow(0, here.count > 0 ? here.begin - own.begin : 0, here.count)
          .copy_(flat.narrow(0, here.count > 0 ? here.begin - seat->offset : 0, here.count));
    }
  }
}

at::Tensor gather(const Plan& plan, const LocalRanks& ranks, Backend& backend, Kept what,
                  ParameterId id, std::uint32_t home, std::uint32_t to, std::int64_t piece_bytes) {
  const ModelGraph& model = ranks.front()->model.graph;
  const auto seat = find(plan, model, id, home);
  if (!seat) {
    return {};
  }
  const auto local = [&](std::uint32_t rank) -> const Rank* {
    const auto found = std::find_if(ranks.begin(), ranks.end(),
                                    [&](const auto& own) { return own->number == rank; });
    return found != ranks.end() ? found->get() : nullptr;
  };
  const Parameter& parameter = model.parameter(id);
  const Elements wanted{seat->offset, parameter.elements()};
  const DType dtype = what == Kept::value ? parameter.dtype : gradient_dtype(parameter.dtype);
  const bool frozen = parameter.frozen;
  if (frozen && what != Kept::value && what != Kept::master) {
    return {};
  }
  const at::ScalarType type = to_torch(frozen ? parameter.dtype : dtype);
  at::Tensor whole = local(to) != nullptr ? at::empty({wanted.count}, type) : at::Tensor();

  const Bucket& bucket = plan.buckets[index(seat->bucket)];
  Share share = share_of(plan, seat->bucket, home);
  const std::vector<std::uint32_t> sharing = share.ranks;
  const bool alone = common(held(bucket, share, what), wanted) == wanted;
  const std::int64_t most = piece_bytes / static_cast<std::int64_t>(c10::elementSize(type));
  for (std::uint32_t i = 0; i < sharing.size(); ++i) {
    const std::uint32_t from = sharing[i];
    if (alone && from != home) {
      continue;
    }
    share.index = i;
    const Elements theirs = held(bucket, share, what);
    const Elements here = common(theirs, wanted);
    at::Tensor flat;
    if (const Rank* const rank = local(from); rank != nullptr) {
      flat = flat_of(*rank->buckets[index(seat->bucket)], what);
      if (!flat.defined()) {  // not kept, on no rank
        return {};
      }
    }
    for (std::int64_t at = here.begin; at < here.end(); at += most) {
      const std::int64_t count = std::min(most, here.end() - at);
      const at::Tensor piece =
          flat.defined() ? flat.narrow(0, at - theirs.begin, count).cpu() : at::Tensor();
      const at::Tensor place =
          whole.defined() ? whole.narrow(0, at - wanted.begin, count) : at::Tensor();
      backend.bring(from, piece.defined() ? piece.const_data_ptr() : nullptr, to,
                    place.defined() ? place.data_ptr() : nullptr,
                    static_cast<std::size_t>(count) * c10::elementSize(type));
    }
  }
  return whole.defined() ? whole.view(parameter.shape) : whole;
}

}  // namespace piper

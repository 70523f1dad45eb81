#include "tests/support/symbolic_state.h"

#include <algorithm>

namespace piper::test {
namespace {

using Kind = Buffer::Kind;

bool is_value(Kind kind) {
  return kind == Kind::input || kind == Kind::activation || kind == Kind::routed;
}
bool is_gradient(Kind kind) {
  return kind == Kind::gradient || kind == Kind::routed_gradient;
}
bool carries_routed(Kind kind) {
  return kind == Kind::routed || kind == Kind::routed_gradient;
}

std::int64_t rows_at_a_time(const Plan& plan) {
  for (const Chunk& chunk : plan.chunks) {
    if (chunk.has_loss) {
      return static_cast<std::int64_t>(plan.programs[chunk.program].ranks.size());
    }
  }
  return 1;
}

}  // namespace

SymbolicState::SymbolicState(const Plan& plan, const ModelGraph& model)
    : plan_(plan), model_(model), rules_(model) {
  std::vector<Block> blocks;
  const std::int64_t places = rows_at_a_time(plan);
  for (std::int64_t i = 0; i < places; ++i) {
    for (std::uint32_t m = 0; m < plan.microbatches; ++m) {
      blocks.push_back(cut(cut({0, plan.global_rows}, places, i), plan.microbatches, m));
    }
  }
  one_device_ = std::make_unique<OneDeviceStep>(model, rules_, std::move(blocks),
                                                plan.kind == Plan::Kind::train);
  bucket_of_.resize(model.parameters.size(), none<BucketId>());
  for (std::uint32_t b = 0; b < plan.buckets.size(); ++b) {
    for (const ParameterId parameter : plan.buckets[b].parameters) {
      bucket_of_[index(parameter)] = BucketId{b};
    }
  }
  cells_.resize(plan.world);
  reported_.resize(plan.world, 0);
  for (const Program& program : plan.programs) {
    for (const std::uint32_t rank : program.ranks) {
      for (const Buffer& buffer : program.buffers) {
        Cell& cell = cells_[rank].emplace_back();
        cell.is_allocated = buffer.persistent();
        cell.sums = {{}};
        if (valid(buffer.bucket)) {
          const Bucket& bucket = plan.buckets[index(buffer.bucket)];
          const bool has_all = buffer.kind == Kind::parameter && bucket.zero < 3;
          cell.versions.assign(has_all ? bucket.shards : 1, 0);
        }
        cell.is_written = buffer.persistent() && buffer.kind != Kind::token_count &&
                          buffer.kind != Kind::grad_norm;
      }
    }
  }
}

Cell& SymbolicState::written(const Launch& l, BufferId id) {
  Cell& cell = this->cell(l.rank, id);
  cell.is_written = true;
  if (cell.sums.empty()) {
    cell.sums = {{}};
  }
  return cell;
}

Cell* SymbolicState::find(const Launch& l, bool among_writes, Kind kind, ValueId value,
                          BucketId bucket) {
  const auto list = among_writes ? program(l).writes_of(*l.task) : program(l).reads_of(*l.task);
  for (const BufferId id : list) {
    const Buffer& buffer = program(l).buffer(id);
    if (buffer.kind == kind && (!valid(value) || buffer.value == value) &&
        (!valid(bucket) || buffer.bucket == bucket)) {
      return among_writes ? &written(l, id) : &cell(l.rank, id);
    }
  }
  return nullptr;
}

Cell* SymbolicState::parameter_of(const Launch& l, BucketId bucket) {
  if (Cell* const gathered = find(l, false, Kind::gathered, none<ValueId>(), bucket)) {
    return gathered;
  }
  Cell* const kept = find(l, false, Kind::parameter, none<ValueId>(), bucket);
  if (kept == nullptr || plan_.buckets[index(bucket)].zero == 3) {
    throw Fault{"computes without a parameter"};
  }
  kept->from = {l.rank};
  return kept;
}

Cell* SymbolicState::activation(const Launch& l, bool among_writes, ValueId value) {
  for (const Kind kind : {Kind::input, Kind::activation, Kind::routed}) {
    if (Cell* const cell = find(l, among_writes, kind, value, none<BucketId>())) {
      return cell;
    }
  }
  throw Fault{"computes without a value"};
}

bool SymbolicState::is_own(RegionId region, std::size_t parameter, const Chunk& chunk,
                           int part) const {
  const std::size_t block = model_.region(region).parameters.size() / chunk.expert_parts;
  return chunk.expert_parts == 1 || static_cast<int>(parameter / block) == part;
}

// The ranks that a parameter comes from hold this block of experts, and always do.
void SymbolicState::note_part(const Launch& l, Cell& parameter, BucketId bucket, int part) {
  if (plan_.buckets[index(bucket)].expert_parts == 1) {
    return;
  }
  for (const std::uint32_t rank : parameter.from) {
    for (std::size_t b = 0; b < program(l).buffers.size(); ++b) {
      const Buffer& buffer = program(l).buffers[b];
      if (buffer.kind != Kind::parameter || buffer.bucket != bucket) {
        continue;
      }
      Cell& kept = cells_[rank][b];
      if (kept.part != -1 && kept.part != part) {
        throw Fault{"computes with the experts of another rank"};
      }
      kept.part = part;
    }
  }
}

std::vector<std::int64_t> SymbolicState::versions(const Launch& l, RegionId region, int part) {
  const Chunk& chunk = plan_.chunks[index(l.task->chunk)];
  std::vector<std::int64_t> list;
  const std::vector<ParameterId>& parameters = model_.region(region).parameters;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (is_own(region, i, chunk, part)) {
      const BucketId bucket = bucket_of_[index(parameters[i])];
      Cell& parameter = *parameter_of(l, bucket);
      note_part(l, parameter, bucket, part);
      list.insert(list.end(), parameter.versions.begin(), parameter.versions.end());
    }
  }
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list;
}

SymbolicState::Inputs SymbolicState::inputs(const Launch& l) {
  const Chunk& chunk = plan_.chunks[index(l.task->chunk)];
  Inputs in;
  bool is_first = true;
  for (const ValueId value : chunk.inputs) {
    const Cell& cell = *activation(l, false, value);
    if (!is_first && (cell.part != in.part || cell.sums.size() != in.sources)) {
      throw Fault{"computes with values of different experts"};
    }
    is_first = false;
    in.part = cell.part;
    in.sources = cell.sums.size();
  }
  if (chunk.experts != (in.part >= 0)) {
    throw Fault{chunk.experts ? "has experts compute what is not routed to them"
                              : "computes with what experts see"};
  }
  in.values.assign(in.sources, std::vector<Sum>(model_.values.size()));
  for (const ValueId value : chunk.inputs) {
    for (std::size_t s = 0; s < in.sources; ++s) {
      in.values[s][index(value)] = activation(l, false, value)->sums[s];
    }
  }
  return in;
}

// The forward of each region; their outputs go into `in`.
std::vector<Symbol> SymbolicState::evaluate(const Launch& l, Inputs& in, std::size_t source) {
  std::vector<Symbol> forwards;
  std::vector<Sum>& values = in.values[source];
  for (const RegionId id : plan_.chunks[index(l.task->chunk)].regions) {
    const Region& region = model_.region(id);
    std::vector<Sum> arguments;
    for (const ValueId value : region.inputs) {
      arguments.push_back(values[index(value)]);
    }
    forwards.push_back(rules_.forward(id, arguments, versions(l, id, in.part)));
    for (std::size_t i = 0; i < region.outputs.size(); ++i) {
      values[index(region.outputs[i])] = {rules_.output(forwards.back(), i)};
    }
  }
  return forwards;
}

void SymbolicState::forward(const Launch& l) {
  const Chunk& chunk = plan_.chunks[index(l.task->chunk)];
  Inputs in = inputs(l);
  Cell* const saved = find(l, true, Kind::saved, none<ValueId>(), none<BucketId>());
  if (chunk.recompute) {
    computed_[{l.rank, l.task->chunk, l.task->microbatch}].clear();
  }
  for (std::size_t s = 0; s < in.sources; ++s) {
    std::vector<Symbol> forwards = evaluate(l, in, s);
    if (chunk.recompute) {
      computed_[{l.rank, l.task->chunk, l.task->microbatch}].push_back(forwards);
    }
    if (saved != nullptr) {
      saved->part = in.part;
      saved->forwards.push_back(std::move(forwards));
    }
    for (const ValueId output : chunk.outputs) {
      if (output == model_.loss) {
        continue;
      }
      Cell& cell = *activation(l, true, output);
      cell.part = in.part;
      cell.sums.resize(in.sources);
      cell.sums[s] = in.values[s][index(output)];
    }
    if (chunk.has_loss) {
      Cell* const sum = find(l, true, Kind::loss_sum, none<ValueId>(), none<BucketId>());
      if (sum == nullptr) {
        throw Fault{"loses a loss"};
      }
      add(sum->sums[0], in.values[s][index(model_.loss)]);
    }
  }
}

void SymbolicState::recompute(const Launch& l) {
  Inputs in = inputs(l);
  Cell* const saved = find(l, true, Kind::saved, none<ValueId>(), none<BucketId>());
  if (saved == nullptr) {
    throw Fault{"recomputes for nothing"};
  }
  saved->part = in.part;
  for (std::size_t s = 0; s < in.sources; ++s) {
    saved->forwards.push_back(evaluate(l, in, s));
  }
  if (saved->forwards != computed_[{l.rank, l.task->chunk, l.task->microbatch}]) {
    throw Fault{"recomputes something else than its forward did"};
  }
}

void SymbolicState::backward(const Launch& l) {
  const Chunk& chunk = plan_.chunks[index(l.task->chunk)];
  const Program& own = program(l);
  Inputs in = inputs(l);
  Cell* const saved = find(l, false, Kind::saved, none<ValueId>(), none<BucketId>());
  if (saved == nullptr || saved->forwards.size() != in.sources) {
    throw Fault{"has nothing that its forward left"};
  }
  for (const BufferId id : own.writes_of(*l.task)) {
    if (is_gradient(own.buffer(id).kind)) {
      Cell& cell = written(l, id);
      cell.sums.assign(in.sources, {});
      cell.part = in.part;
    }
  }
  for (std::size_t s = 0; s < in.sources; ++s) {
    const std::vector<Symbol> forwards = evaluate(l, in, s);
    if (forwards != saved->forwards[s]) {
      throw Fault{"reads something else than its forward did"};
    }
    std::vector<Sum> gradients(model_.values.size());
    for (const BufferId id : own.reads_of(*l.task)) {
      const Buffer& buffer = own.buffer(id);
      if (!is_gradient(buffer.kind)) {
        continue;
      }
      const Cell& cell = this->cell(l.rank, id);
      if (cell.part != in.part || cell.sums.size() != in.sources) {
        throw Fault{"reads a gradient of other experts"};
      }
      add(gradients[index(buffer.value)], cell.sums[s]);
    }
    if (chunk.has_loss) {
      const Cell* const count =
          find(l, false, Kind::token_count, none<ValueId>(), none<BucketId>());
      if (count == nullptr || count->sums[0].size() != 1) {
        throw Fault{"does not know the token count"};
      }
      add(gradients[index(model_.loss)], {rules_.gradient_of_loss(count->sums[0][0])});
    }
    std::vector<Sum>& backwards = saved->backwards.emplace_back(chunk.regions.size());
    for (std::size_t r = chunk.regions.size(); r-- > 0;) {
      const Region& region = model_.region(chunk.regions[r]);
      std::vector<Sum> of_outputs;
      for (const ValueId output : region.outputs) {
        of_outputs.push_back(gradients[index(output)]);
      }
      if (!rules_.has_backward(chunk.regions[r], of_outputs)) {
        continue;
      }
      const Symbol back = rules_.backward(chunk.regions[r], forwards[r],
                                          versions(l, chunk.regions[r], in.part), of_outputs);
      backwards[r] = {back};
      for (std::size_t i = 0; i < region.inputs.size(); ++i) {
        if (rules_.wants_gradient(region.inputs[i])) {
          add(gradients[index(region.inputs[i])], {rules_.gradient_of_input(back, i)});
        }
      }
    }
    for (const BufferId id : own.writes_of(*l.task)) {
      const Buffer& buffer = own.buffer(id);
      if (is_gradient(buffer.kind)) {
        this->cell(l.rank, id).sums[s] = gradients[index(buffer.value)];
      }
    }
  }
  if (l.task->op == Op::backward) {
    contribute(l, *saved, in.part);
  }
}

void SymbolicState::backward_weight(const Launch& l) {
  const Cell* const saved = find(l, false, Kind::saved, none<ValueId>(), none<BucketId>());
  if (saved == nullptr || saved->backwards.empty()) {
    throw Fault{"computes gradients of parameters before those of inputs"};
  }
  contribute(l, *saved, saved->part);
}

void SymbolicState::contribute(const Launch& l, const Cell& saved, int part) {
  const Chunk& chunk = plan_.chunks[index(l.task->chunk)];
  for (const std::vector<Sum>& backwards : saved.backwards) {
    for (std::size_t r = 0; r < chunk.regions.size(); ++r) {
      const std::vector<ParameterId>& parameters = model_.region(chunk.regions[r]).parameters;
      for (std::size_t i = 0; i < parameters.size() && !backwards[r].empty(); ++i) {
        if (model_.parameter(parameters[i]).frozen || !is_own(chunk.regions[r], i, chunk, part)) {
          continue;
        }
        const BucketId bucket = bucket_of_[index(parameters[i])];
        Cell* cell = find(l, true, Kind::full_gradient, none<ValueId>(), bucket);
        if (cell == nullptr) {
          cell = find(l, true, Kind::parameter_gradient, none<ValueId>(), bucket);
        }
        if (cell == nullptr) {
          throw Fault{"has no place for a gradient"};
        }
        cell->part = part;
        add(cell->sums[0], {rules_.gradient_of_parameter(backwards[r][0], i)});
      }
    }
  }
}

void SymbolicState::message(const Launch& send, const Launch& recv) {
  const auto reads = program(send).reads_of(*send.task),
             writes = program(recv).writes_of(*recv.task);
  if (reads.size() != 1 || writes.size() != 1) {
    throw Fault{"sends or receives other than one value"};
  }
  const Buffer &from = program(send).buffer(reads[0]), &to = program(recv).buffer(writes[0]);
  if (from.kind != to.kind || from.value != to.value) {
    throw Fault{"receives another value than is sent"};
  }
  const Cell& source = cell(send.rank, reads[0]);
  Cell& target = written(recv, writes[0]);
  target.sums = source.sums;
  target.part = source.part;
}

void SymbolicState::all_to_all(const std::vector<Launch>& members) {
  const std::size_t values = program(members[0]).reads_of(*members[0].task).size();
  const auto of = [&](std::size_t member, std::size_t i, bool writes) {
    const Launch& l = members[member];
    const auto list = writes ? program(l).writes_of(*l.task) : program(l).reads_of(*l.task);
    if (list.size() != values) {
      throw Fault{"exchanges different numbers of values"};
    }
    return list[i];
  };
  for (std::size_t i = 0; i < values; ++i) {
    const Buffer& first = program(members[0]).buffer(of(0, i, false));
    const bool leaves = carries_routed(first.kind);
    for (std::size_t e = 0; e < members.size(); ++e) {
      const Buffer &in = program(members[e]).buffer(of(e, i, false)),
                   &out = program(members[e]).buffer(of(e, i, true));
      if (in.kind != first.kind || in.value != first.value || out.value != first.value ||
          carries_routed(out.kind) == leaves || is_value(in.kind) != is_value(out.kind)) {
        throw Fault{"exchanges different values"};
      }
      Cell& target = written(members[e], of(e, i, true));
      target.sums.clear();
      target.part = leaves ? -1 : static_cast<int>(e);
      for (std::size_t j = 0; j < members.size(); ++j) {
        const Cell& source = cell(members[j].rank, of(j, i, false));
        if (leaves ? source.part != static_cast<int>(j) || source.sums.size() != members.size()
                   : source.part != -1 || source.sums.size() != 1) {
          throw Fault{"exchanges what is not of these experts"};
        }
        const Sum& sum = source.sums[leaves ? e : 0];
        if (!leaves || j == 0) {
          target.sums.push_back(sum);
        } else if (sum != target.sums[0]) {
          throw Fault{"puts together parts of different values"};
        }
      }
    }
  }
}

void SymbolicState::all_reduce(const std::vector<Launch>& members) {
  Sum sum;
  int shard = -1, part = -1;
  std::vector<Cell*> cells;
  for (const Launch& l : members) {
    Cell* const cell = find(l, true, Kind::parameter_gradient, none<ValueId>(), l.task->bucket);
    if (cell == nullptr) {
      throw Fault{"reduces nothing"};
    }
    // A rank that has nothing to add has no shard yet.
    if (shard != -1 && cell->shard != -1 && cell->shard != shard) {
      throw Fault{"sums different shards"};
    }
    if (cell->shard == -1 && !cell->sums[0].empty() &&
        plan_.buckets[index(l.task->bucket)].zero > 0) {
      throw Fault{"sums what is no shard"};
    }
    if (part != -1 && cell->part != -1 && cell->part != part) {
      throw Fault{"sums gradients of different experts"};
    }
    shard = std::max(shard, cell->shard);
    part = std::max(part, cell->part);
    add(sum, cell->sums[0]);
    cells.push_back(cell);
  }
  for (Cell* const cell : cells) {
    cell->sums[0] = sum;
    cell->part = part;
    cell->shard = shard;
  }
}

void SymbolicState::reduce_scatter(const std::vector<Launch>& members) {
  Sum sum;
  int part = -1;
  for (const Launch& l : members) {
    const Cell* const full = find(l, false, Kind::full_gradient, none<ValueId>(), l.task->bucket);
    if (full == nullptr || (part != -1 && full->part != -1 && full->part != part)) {
      throw Fault{"sums gradients of different experts, or none"};
    }
    part = std::max(part, full->part);
    add(sum, full->sums[0]);
  }
  for (std::size_t i = 0; i < members.size(); ++i) {
    Cell* const cell =
        find(members[i], true, Kind::parameter_gradient, none<ValueId>(), members[i].task->bucket);
    if (cell == nullptr || (cell->shard != -1 && cell->shard != static_cast<int>(i))) {
      throw Fault{"adds to another shard"};
    }
    cell->shard = static_cast<int>(i);
    cell->part = part;
    add(cell->sums[0], sum);
  }
}

void SymbolicState::all_gather(const std::vector<Launch>& members) {
  const BucketId bucket = members[0].task->bucket;
  std::vector<Cell*> kept;
  for (const Launch& l : members) {
    kept.push_back(find(l, false, Kind::parameter, none<ValueId>(), bucket));
    if (kept.back() == nullptr) {
      throw Fault{"gathers nothing"};
    }
  }
  if (members.size() != plan_.buckets[index(bucket)].shards) {
    throw Fault{"gathers another number of shards"};
  }
  std::vector<std::int64_t> versions;
  std::vector<std::uint32_t> from;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const bool is_shard = plan_.buckets[index(bucket)].zero == 3;
    if (kept[i]->shard != -1 && kept[i]->shard != static_cast<int>(i)) {
      throw Fault{"takes another shard from rank " + std::to_string(members[i].rank)};
    }
    kept[i]->shard = static_cast<int>(i);
    if (kept[i]->has_pending_update) {
      ++kept[i]->versions[i];
      kept[i]->has_pending_update = false;
    }
    versions.push_back(kept[i]->versions[is_shard ? 0 : i]);
    from.push_back(members[i].rank);
  }
  for (const Launch& l : members) {
    Cell* target = find(l, true, Kind::gathered, none<ValueId>(), bucket);
    target = target == nullptr ? find(l, true, Kind::parameter, none<ValueId>(), bucket) : target;
    if (target == nullptr) {
      throw Fault{"gathers to nowhere"};
    }
    target->versions = versions;
    target->from = from;
  }
}

void SymbolicState::token_count(const std::vector<Launch>& members) {
  Sum labels;
  for (const Launch& l : members) {
    for (const BufferId id : program(l).reads_of(*l.task)) {
      if (program(l).buffer(id).value == model_.labels) {
        add(labels, cell(l.rank, id).sums[0]);
      }
    }
  }
  const Symbol count = rules_.count(labels);
  if (count != one_device_->count(members[0].period)) {
    throw Fault{"counts other labels than those of the step"};
  }
  for (const Launch& l : members) {
    if (Cell* const cell = find(l, true, Kind::token_count, none<ValueId>(), none<BucketId>())) {
      cell->sums = {{count}};
    }
  }
}

Sum SymbolicState::expected_gradient(BucketId id, int part, std::int64_t step) {
  const Bucket& bucket = plan_.buckets[index(id)];
  Sum sum;
  for (std::uint32_t r = 0; r < model_.regions.size(); ++r) {
    const std::vector<ParameterId>& parameters = model_.regions[r].parameters;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const bool is_first_use = std::none_of(
          model_.regions.begin(), model_.regions.begin() + r, [&](const Region& before) {
            return std::find(before.parameters.begin(), before.parameters.end(), parameters[i]) !=
                   before.parameters.end();
          });
      const std::size_t block = std::max<std::size_t>(parameters.size() / bucket.expert_parts, 1);
      const bool is_here = bucket.expert_parts == 1 || static_cast<int>(i / block) == part;
      if (is_first_use && is_here && bucket_of_[index(parameters[i])] == id) {
        add(sum, one_device_->gradient(parameters[i], step));
      }
    }
  }
  return sum;
}

void SymbolicState::grad_norm(const std::vector<Launch>& members) {
  for (const Launch& l : members) {
    for (const BucketId bucket : program(l).buckets) {
      if (plan_.buckets[index(bucket)].frozen) {
        continue;
      }
      const Cell* const cell = find(l, false, Kind::parameter_gradient, none<ValueId>(), bucket);
      if (cell == nullptr ||
          cell->sums[0] != expected_gradient(bucket, cell->part, members[0].period)) {
        throw Fault{"takes the norm of another gradient of bucket " +
                    std::to_string(index(bucket))};
      }
    }
    if (Cell* const norm = find(l, true, Kind::grad_norm, none<ValueId>(), none<BucketId>())) {
      norm->versions = {l.period};
    }
  }
}

void SymbolicState::loss_report(const std::vector<Launch>& members) {
  Sum losses;
  for (const Launch& l : members) {
    if (Cell* const cell = find(l, true, Kind::loss_sum, none<ValueId>(), none<BucketId>())) {
      add(losses, cell->sums[0]);
      cell->sums = {{}};
    }
    ++reported_[l.rank];
  }
  if (losses != one_device_->losses(members[0].period)) {
    throw Fault{"reports another loss"};
  }
}

void SymbolicState::update(const Launch& l) {
  const BucketId bucket = l.task->bucket;
  Cell* const norm = find(l, false, Kind::grad_norm, none<ValueId>(), none<BucketId>());
  Cell* const parameter = find(l, true, Kind::parameter, none<ValueId>(), bucket);
  Cell* const gradient = find(l, true, Kind::parameter_gradient, none<ValueId>(), bucket);
  Cell* const optimizer = find(l, true, Kind::optimizer, none<ValueId>(), bucket);
  if (norm == nullptr || parameter == nullptr || gradient == nullptr || optimizer == nullptr) {
    throw Fault{"updates without a part of the state"};
  }
  if (norm->versions != std::vector{l.period}) {
    throw Fault{"updates with the norm of another step"};
  }
  if (gradient->sums[0] != expected_gradient(bucket, gradient->part, l.period)) {
    throw Fault{"updates with another gradient"};
  }
  const std::uint32_t zero = plan_.buckets[index(bucket)].zero;
  if (gradient->shard != -1) {
    if (parameter->shard != -1 && parameter->shard != gradient->shard) {
      throw Fault{"updates another shard than it has a gradient of"};
    }
    parameter->shard = gradient->shard;
  }
  const bool keeps_all = zero == 1 || zero == 2;
  const int shard = keeps_all ? parameter->shard : 0;
  if (optimizer->versions[0] != l.period || parameter->has_pending_update ||
      parameter->versions[static_cast<std::size_t>(std::max(shard, 0))] != l.period) {
    throw Fault{"updates what another step left"};
  }
  if (shard == -1) {
    parameter->has_pending_update = true;
  } else {
    ++parameter->versions[static_cast<std::size_t>(shard)];
  }
  ++optimizer->versions[0];
  gradient->sums = {{}};
  gradient->shard = -1;
}

void SymbolicState::deliver(const Launch& l) {
  const auto places = static_cast<std::int64_t>(program(l).ranks.size());
  for (const BufferId id : program(l).writes_of(*l.task)) {
    const Buffer& buffer = program(l).buffer(id);
    const Block rows = cut(cut({0, plan_.global_rows}, places, l.coordinate), plan_.microbatches,
                           buffer.microbatch);
    written(l, id).sums = {{rules_.input(buffer.value, rows, l.period)}};
  }
}

std::string SymbolicState::run(const std::vector<Launch>& members) {
  const Launch& l = members[0];
  try {
    switch (l.task->op) {
      case Op::forward:
        forward(l);
        break;
      case Op::recompute:
        recompute(l);
        break;
      case Op::backward:
      case Op::backward_input:
        backward(l);
        break;
      case Op::backward_weight:
        backward_weight(l);
        break;
      case Op::send:
        message(members[0], members[1]);
        break;
      case Op::all_to_all:
        all_to_all(members);
        break;
      case Op::all_reduce:
        all_reduce(members);
        break;
      case Op::reduce_scatter:
        reduce_scatter(members);
        break;
      case Op::all_gather:
        all_gather(members);
        break;
      case Op::token_count:
        token_count(members);
        break;
      case Op::grad_norm:
        grad_norm(members);
        break;
      case Op::loss_report:
        loss_report(members);
        break;
      case Op::update:
        update(l);
        break;
      case Op::input:
        deliver(l);
        break;
      default:
        return "has no meaning";
    }
  } catch (const Fault& fault) {
    return fault.text;
  }
  return "";
}

std::string SymbolicState::check_end(std::int64_t periods) {
  const std::int64_t steps = plan_.kind == Plan::Kind::train ? periods : 0;
  for (const Program& program : plan_.programs) {
    for (const std::uint32_t rank : program.ranks) {
      const std::string who = "at the end, rank " + std::to_string(rank) + " ";
      if (reported_[rank] != periods) {
        return who + "has not reported every loss";
      }
      for (std::size_t b = 0; b < program.buffers.size(); ++b) {
        const Buffer& buffer = program.buffers[b];
        const Cell& cell = cells_[rank][b];
        if (!buffer.persistent()) {
          if (cell.is_allocated) {
            return who + "still has a buffer";
          }
          continue;
        }
        const bool is_trained = valid(buffer.bucket) && !plan_.buckets[index(buffer.bucket)].frozen;
        if (buffer.kind == Kind::parameter || buffer.kind == Kind::optimizer) {
          const std::int64_t expected = is_trained ? steps : 0;
          if (std::any_of(cell.versions.begin(), cell.versions.end(),
                          [&](std::int64_t version) { return version != expected; })) {
            return who + "has another version of bucket " + std::to_string(index(buffer.bucket));
          }
        } else if ((buffer.kind == Kind::parameter_gradient || buffer.kind == Kind::loss_sum) &&
                   !cell.sums[0].empty()) {
          return who + "still has a gradient or a loss";
        }
      }
    }
  }
  return "";
}

}  // namespace piper::test

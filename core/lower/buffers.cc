#include "core/lower/buffers.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/lower/experts.h"

namespace piper {
namespace {

// What a rank's optimizer keeps for a bucket: moments, and master weights where parameters are
// narrower than gradients.
std::int64_t optimizer_bytes(const Bucket& bucket, const OptimizerConfig& optimizer) {
  const DType wide = gradient_dtype(bucket.dtype);
  std::int64_t copies = wide != bucket.dtype ? 1 : 0;
  if (optimizer.name == OptimizerName::adamw) {
    copies += 2;
  } else if (optimizer.momentum > 0) {
    copies += 1;
  }
  return copies * bucket.shard_elements() * size_of(wide);
}

Affine times(Affine bytes, std::uint32_t n) {
  return {bytes.per_row * n, bytes.fixed * n};
}

}  // namespace

BufferId BufferTable::Block::at(std::uint32_t m) const {
  PIPER_CHECK(made(), "a task uses a buffer that its program does not have");
  if (microbatches == nullptr) {
    return BufferId{first + m};
  }
  const auto found = std::lower_bound(microbatches->begin(), microbatches->end(), m);
  return BufferId{first + static_cast<std::uint32_t>(found - microbatches->begin())};
}

BufferTable::BufferTable(const Dag& dag, const ModelGraph& model, const Config& config,
                         const Timeline& timeline, std::uint32_t program, Program& out)
    : dag_(dag), model_(model), config_(config), program_(program), out_(out) {
  std::uint32_t uses = 0;
  for (const Chunk& chunk : dag.chunks) {
    first_use_.push_back(uses);
    uses += static_cast<std::uint32_t>(chunk.inputs.size());
  }
  values_.resize(model.values.size());
  routed_outputs_.resize(model.values.size());
  gradients_.resize(uses);
  routed_.resize(uses);
  routed_gradients_.resize(uses);
  saved_.resize(dag.chunks.size());
  gathered_.resize(dag.buckets.size());
  full_gradients_.resize(dag.buckets.size());
  parameters_.resize(dag.buckets.size(), none<BufferId>());
  parameter_gradients_ = optimizers_ = parameters_;
  kept_.reserve(uses + model.values.size() + 1);  // Blocks point into it

  gathers_.resize(dag.buckets.size());
  reductions_.resize(dag.buckets.size());
  for (const std::vector<NodeId>& stream : timeline.order[program]) {
    for (const NodeId node : stream) {
      if (dag.node(node).op == Op::all_gather) {
        ++gathers_[index(dag.node(node).bucket)];
      } else if (dag.node(node).op == Op::reduce_scatter) {
        ++reductions_[index(dag.node(node).bucket)];
      }
    }
  }
  add_buckets();
  for (std::uint32_t c = 0; c < dag.chunks.size(); ++c) {
    if (dag.chunks[c].program == program) {
      add_chunk(ChunkId{c});
    }
  }
  for (const std::vector<NodeId>& stream : timeline.order[program]) {
    for (const NodeId node : stream) {
      add_received(dag.node(node));
    }
  }
  if (dag.trains()) {
    grad_norm_ = add_persistent(Buffer::Kind::grad_norm, none<BucketId>(), 16);
  }
}

std::uint32_t BufferTable::input_of(ChunkId user, ValueId v) const {
  const std::vector<ValueId>& inputs = dag_.chunk(user).inputs;
  return static_cast<std::uint32_t>(std::find(inputs.begin(), inputs.end(), v) - inputs.begin());
}

BufferId BufferTable::add_persistent(Buffer::Kind kind, BucketId bucket, std::int64_t bytes) {
  Buffer buffer;
  buffer.kind = kind;
  buffer.bucket = bucket;
  buffer.bytes = {0, bytes};
  out_.buffers.push_back(buffer);
  return BufferId{static_cast<std::uint32_t>(out_.buffers.size() - 1)};
}

void BufferTable::add_block(Block& block, Buffer buffer,
                            const std::vector<std::uint32_t>* microbatches, std::uint32_t count) {
  if (block.made()) {
    return;
  }
  block = {static_cast<std::uint32_t>(out_.buffers.size()), microbatches};
  for (std::uint32_t i = 0; i < count; ++i) {
    buffer.microbatch = microbatches != nullptr ? (*microbatches)[i] : i;
    out_.buffers.push_back(buffer);
  }
}

const std::vector<std::uint32_t>* BufferTable::keep(std::vector<std::uint32_t> microbatches) {
  if (microbatches.size() == dag_.microbatches) {
    return nullptr;
  }
  kept_.push_back(std::move(microbatches));
  return &kept_.back();
}

// For every micro-batch of which the program runs somebody who makes or reads it.
void BufferTable::add_value(ValueId v) {
  if (values_[index(v)].made()) {
    return;
  }
  std::vector<bool> needed(dag_.microbatches, false);
  bool all = false;
  const auto need = [&](ChunkId id) {
    const Chunk& chunk = dag_.chunk(id);
    if (chunk.program == program_) {
      all = all || chunk.microbatches.empty();
      for (const std::uint32_t m : chunk.microbatches) {
        needed[m] = true;
      }
    }
  };
  std::for_each(dag_.makers[index(v)].begin(), dag_.makers[index(v)].end(), need);
  for (const Use& use : dag_.uses[index(v)]) {
    need(use.chunk);
  }
  const bool input = model_.value(v).is_input();
  if (input && v == model_.labels) {
    for (std::uint32_t c = 0; c < dag_.chunks.size(); ++c) {
      if (dag_.chunks[c].has_loss) {
        need(ChunkId{c});
      }
    }
  }
  const std::vector<std::uint32_t>* microbatches = nullptr;
  if (!all) {
    std::vector<std::uint32_t> list;
    for (std::uint32_t m = 0; m < dag_.microbatches; ++m) {
      if (needed[m]) {
        list.push_back(m);
      }
    }
    microbatches = keep(std::move(list));
  }
  Buffer buffer;
  buffer.kind = input ? Buffer::Kind::input : Buffer::Kind::activation;
  buffer.value = v;
  buffer.bytes = model_.value(v).bytes();
  add_block(values_[index(v)], buffer, microbatches,
            microbatches == nullptr ? dag_.microbatches
                                    : static_cast<std::uint32_t>(microbatches->size()));
  if (input) {
    inputs_.push_back(v);
  }
}

void BufferTable::add_buckets() {
  for (const BucketId id : out_.buckets) {
    const Bucket& bucket = dag_.bucket(id);
    parameters_[index(id)] = add_persistent(Buffer::Kind::parameter, id, bucket.kept_bytes());
    if (dag_.trains() && !bucket.frozen) {
      parameter_gradients_[index(id)] =
          add_persistent(Buffer::Kind::parameter_gradient, id, bucket.shard_gradient_bytes());
      optimizers_[index(id)] =
          add_persistent(Buffer::Kind::optimizer, id, optimizer_bytes(bucket, config_.optimizer));
    }
  }
}

void BufferTable::add_chunk(ChunkId id) {
  const Chunk& chunk = dag_.chunk(id);
  const std::uint32_t count = runs(dag_, chunk);
  const std::vector<std::uint32_t>* microbatches =
      chunk.microbatches.empty() ? nullptr : &chunk.microbatches;
  if (chunk.has_loss && !valid(loss_sum_)) {
    loss_sum_ = add_persistent(Buffer::Kind::loss_sum, none<BucketId>(), 8);
    token_count_ = add_persistent(Buffer::Kind::token_count, none<BucketId>(), 8);
  }
  for (std::uint32_t i = 0; i < chunk.inputs.size(); ++i) {
    const ValueId v = chunk.inputs[i];
    const bool made_by_experts =
        chunk.experts && std::all_of(dag_.makers[index(v)].begin(), dag_.makers[index(v)].end(),
                                     [&](ChunkId m) { return !routes(dag_, m, id); });
    if (!made_by_experts) {
      add_value(v);
    }
    if (computes_gradient(dag_, v, id)) {
      Buffer buffer;
      buffer.kind = Buffer::Kind::gradient;
      buffer.value = v;
      buffer.chunk = id;
      buffer.bytes = model_.value(v).bytes();
      add_block(gradients_[use(id, i)], buffer, microbatches, count);
    }
  }
  if (chunk.has_loss) {
    add_value(model_.labels);  // counted even where the loss does not read them
  }
  for (const ValueId v : chunk.outputs) {
    if (!chunk.experts) {
      add_value(v);
    }
  }
  if (chunk.experts) {
    add_routed(id);
  }
  if (dag_.trains() && chunk.has_backward) {
    Buffer buffer;
    buffer.kind = Buffer::Kind::saved;
    buffer.chunk = id;
    buffer.bytes = times(chunk.saved_bytes, chunk.expert_parts);
    add_block(saved_[index(id)], buffer, microbatches, count);
  }
}

// Experts see routed values. At most all rows of their group arrive at one of them.
void BufferTable::add_routed(ChunkId id) {
  const Chunk& chunk = dag_.chunk(id);
  const std::uint32_t count = runs(dag_, chunk);
  const std::vector<std::uint32_t>* microbatches =
      chunk.microbatches.empty() ? nullptr : &chunk.microbatches;
  Buffer buffer;
  const auto describe_value = [&](Buffer::Kind kind, ValueId v, ChunkId reader) {
    buffer.kind = kind;
    buffer.value = v;
    buffer.chunk = reader;
    buffer.bytes = times(model_.value(v).bytes(), chunk.expert_parts);
  };
  for (const ValueId v : routed_inputs(dag_, id)) {
    const std::uint32_t input = input_of(id, v);
    describe_value(Buffer::Kind::routed, v, id);
    add_block(routed_[use(id, input)], buffer, microbatches, count);
    if (computes_gradient(dag_, v, id)) {
      describe_value(Buffer::Kind::routed_gradient, v, id);
      add_block(routed_gradients_[use(id, input)], buffer, microbatches, count);
    }
  }
  for (const ValueId v : chunk.outputs) {
    describe_value(Buffer::Kind::routed, v, none<ChunkId>());
    add_block(routed_outputs_[index(v)], buffer, microbatches, count);
    for (const Use& reader : dag_.uses[index(v)]) {
      if (!routes(dag_, id, reader.chunk)) {
        continue;
      }
      add_value(v);
      if (dag_.chunk(reader.chunk).program == program_ &&
          computes_gradient(dag_, v, reader.chunk)) {
        describe_value(Buffer::Kind::routed_gradient, v, reader.chunk);
        add_block(routed_gradients_[use(reader.chunk, reader.input)], buffer, microbatches, count);
      }
    }
  }
}

// What comes from other ranks: gradients of other programs' chunks, and the chains of a bucket.
void BufferTable::add_received(const Node& node) {
  Buffer buffer;
  if (node.op == Op::recv && valid(node.chunk)) {
    Block& block = gradients_[use(node.chunk, input_of(node.chunk, node.value))];
    if (block.made()) {
      return;
    }
    const Chunk& user = dag_.chunk(node.chunk);
    std::vector<std::uint32_t> list;
    for (const ChunkId maker : dag_.makers[index(node.value)]) {
      if (dag_.chunk(maker).program == program_) {
        list = shared_microbatches(dag_, dag_.chunk(maker), user);
      }
    }
    const auto count = static_cast<std::uint32_t>(list.size());
    buffer.kind = Buffer::Kind::gradient;
    buffer.value = node.value;
    buffer.chunk = node.chunk;
    buffer.bytes = model_.value(node.value).bytes();
    add_block(block, buffer, keep(std::move(list)), count);
  }
  const bool gathers = node.op == Op::all_gather && dag_.bucket(node.bucket).zero == 3;
  if (!gathers && node.op != Op::reduce_scatter) {
    return;
  }
  const Bucket& bucket = dag_.bucket(node.bucket);
  Block& block = (gathers ? gathered_ : full_gradients_)[index(node.bucket)];
  if (block.made()) {
    return;
  }
  buffer.kind = gathers ? Buffer::Kind::gathered : Buffer::Kind::full_gradient;
  buffer.bucket = node.bucket;
  buffer.bytes = {0, gathers ? bucket.bytes() : bucket.gradient_bytes()};
  add_block(block, buffer, nullptr, (gathers ? gathers_ : reductions_)[index(node.bucket)]);
}

}  // namespace piper

#include "core/verify/buffer_map.h"

#include <string>

namespace piper {
namespace {

using Kind = Buffer::Kind;

std::size_t bucket_slot(Kind kind, BucketId bucket) {
  return index(bucket) * kBufferKinds + static_cast<std::size_t>(kind);
}

}  // namespace

BufferMap::BufferMap(const Plan& plan, const ModelGraph& model)
    : plan_(plan), values_(model.values.size()) {
  first_edge_.push_back(0);
  for (const Chunk& chunk : plan.chunks) {
    first_edge_.push_back(first_edge_.back() + static_cast<std::uint32_t>(chunk.inputs.size()));
  }
}

std::uint32_t BufferMap::edge(ValueId value, ChunkId consumer) const {
  const std::vector<ValueId>& inputs = plan_.chunks[index(consumer)].inputs;
  for (std::uint32_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == value) {
      return first_edge_[index(consumer)] + i;
    }
  }
  return kNothing;
}

std::vector<std::uint32_t>& BufferMap::rows_of(Kind kind) {
  return kind == Kind::gradient ? edge_rows_
         : kind == Kind::routed ? routed_edge_rows_
                                : routed_gradient_rows_;
}

BufferId* BufferMap::row(std::vector<std::uint32_t>& rows, std::uint32_t key,
                         std::uint32_t microbatch) {
  if (rows[key] == kNothing) {
    rows[key] = static_cast<std::uint32_t>(table_.size());
    table_.resize(table_.size() + plan_.microbatches, none<BufferId>());
  }
  return &table_[rows[key] + microbatch];
}

BufferId BufferMap::at(const std::vector<std::uint32_t>& rows, std::uint32_t key,
                       std::uint32_t microbatch) const {
  return rows[key] == kNothing ? none<BufferId>() : table_[rows[key] + microbatch];
}

BufferId* BufferMap::chain(std::vector<std::uint32_t>& rows, const Buffer& buffer,
                           const std::vector<std::uint32_t>& counts) {
  if (!valid(buffer.bucket) || buffer.microbatch >= counts[index(buffer.bucket)]) {
    return nullptr;
  }
  std::uint32_t& first = rows[index(buffer.bucket)];
  if (first == kNothing) {
    first = static_cast<std::uint32_t>(table_.size());
    table_.resize(table_.size() + counts[index(buffer.bucket)], none<BufferId>());
  }
  return &table_[first + buffer.microbatch];
}

BufferId* BufferMap::place(const Buffer& buffer, const Chains& chains) {
  switch (buffer.kind) {
    case Kind::input:
    case Kind::activation:
      return valid(buffer.value) && !valid(buffer.chunk)
                 ? row(value_rows_, index(buffer.value), buffer.microbatch)
                 : nullptr;
    case Kind::routed:
      if (valid(buffer.value) && !valid(buffer.chunk)) {
        return row(routed_rows_, index(buffer.value), buffer.microbatch);
      }
      [[fallthrough]];
    case Kind::gradient:
    case Kind::routed_gradient: {
      if (!valid(buffer.value) || !valid(buffer.chunk)) {
        return nullptr;
      }
      const std::uint32_t key = edge(buffer.value, buffer.chunk);
      return key == kNothing ? nullptr : row(rows_of(buffer.kind), key, buffer.microbatch);
    }
    case Kind::gathered:
      return chain(gathered_rows_, buffer, chains.gathers);
    case Kind::full_gradient:
      return chain(full_gradient_rows_, buffer, chains.reductions);
    case Kind::saved:
      return valid(buffer.chunk) ? row(chunk_rows_, index(buffer.chunk), buffer.microbatch)
                                 : nullptr;
    case Kind::parameter:
    case Kind::parameter_gradient:
    case Kind::optimizer:
      return valid(buffer.bucket) ? &buckets_[bucket_slot(buffer.kind, buffer.bucket)] : nullptr;
    case Kind::loss_sum:
    case Kind::token_count:
    case Kind::grad_norm:
      return &singles_[static_cast<std::size_t>(buffer.kind)];
  }
  return nullptr;
}

void BufferMap::build(Report& report, std::uint32_t program_id, const Chains& chains) {
  value_rows_.assign(values_, kNothing);
  edge_rows_.assign(first_edge_.back(), kNothing);
  routed_rows_ = value_rows_;
  routed_edge_rows_ = routed_gradient_rows_ = edge_rows_;
  gathered_rows_.assign(plan_.buckets.size(), kNothing);
  full_gradient_rows_ = gathered_rows_;
  chunk_rows_.assign(plan_.chunks.size(), kNothing);
  table_.clear();
  buckets_.assign(plan_.buckets.size() * kBufferKinds, none<BufferId>());
  singles_.assign(kBufferKinds, none<BufferId>());
  const Program& program = plan_.programs[program_id];
  const auto bad = [&](std::uint32_t b, const std::string& message) {
    report.add("plan.form", "program " + std::to_string(program_id) + ": buffer " +
                                std::to_string(b) + " (" +
                                std::string(to_string(program.buffers[b].kind)) + ") " + message);
  };
  for (std::uint32_t b = 0; b < program.buffers.size(); ++b) {
    const Buffer& buffer = program.buffers[b];
    BufferId* const entry = place(buffer, chains);
    if (entry == nullptr) {
      bad(b, "does not say what it holds");
      continue;
    }
    if (valid(*entry)) {
      bad(b, "holds " + report.buffer(buffer) + ", as buffer " + std::to_string(index(*entry)) +
                 " does");
    }
    *entry = static_cast<BufferId>(b);
    const bool lives_on = lives_as_long_as_the_job(buffer.kind);
    if (lives_on && (valid(buffer.alloc) || valid(buffer.free))) {
      bad(b, "lives as long as the job, but a task allocates or frees it");
    } else if (!lives_on && (!valid(buffer.alloc) || !valid(buffer.free))) {
      report.add("plan.release",
                 "program " + std::to_string(program_id) + ": " + report.buffer(buffer) +
                     (valid(buffer.alloc) ? " is never freed" : " is never allocated"));
    }
  }
}

BufferId BufferMap::find(const Content& content) const {
  switch (content.kind) {
    case Kind::input:
    case Kind::activation:
      return at(value_rows_, index(content.value), content.microbatch);
    case Kind::routed:
      if (!valid(content.chunk)) {
        return at(routed_rows_, index(content.value), content.microbatch);
      }
      [[fallthrough]];
    case Kind::gradient:
    case Kind::routed_gradient: {
      const std::uint32_t key = edge(content.value, content.chunk);
      return key == kNothing ? none<BufferId>()
                             : at(rows_of(content.kind), key, content.microbatch);
    }
    case Kind::saved:
      return at(chunk_rows_, index(content.chunk), content.microbatch);
    case Kind::gathered:
      return at(gathered_rows_, index(content.bucket), content.chain);
    case Kind::full_gradient:
      return at(full_gradient_rows_, index(content.bucket), content.chain);
    case Kind::parameter:
    case Kind::parameter_gradient:
    case Kind::optimizer:
      return buckets_[bucket_slot(content.kind, content.bucket)];
    case Kind::loss_sum:
    case Kind::token_count:
    case Kind::grad_norm:
      break;
  }
  return singles_[static_cast<std::size_t>(content.kind)];
}

}  // namespace piper

#include "core/verify/buffer_map.h"

#include <string>

namespace piper {
namespace {

using Kind = Buffer::Kind;

std::size_t bucket_slot(Kind kind, BucketId bucket) {
  return std::size_t{index(bucket)} * 3 +
         (static_cast<std::size_t>(kind) - static_cast<std::size_t>(Kind::parameter));
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

BufferId* BufferMap::place(const Buffer& buffer) {
  switch (buffer.kind) {
    case Kind::input:
    case Kind::activation:
      return valid(buffer.value) && !valid(buffer.chunk)
                 ? row(value_rows_, index(buffer.value), buffer.microbatch)
                 : nullptr;
    case Kind::gradient: {
      if (!valid(buffer.value) || !valid(buffer.chunk)) {
        return nullptr;
      }
      const std::uint32_t key = edge(buffer.value, buffer.chunk);
      return key == kNothing ? nullptr : row(edge_rows_, key, buffer.microbatch);
    }
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

void BufferMap::build(Report& report, std::uint32_t program_id) {
  value_rows_.assign(values_, kNothing);
  edge_rows_.assign(first_edge_.back(), kNothing);
  chunk_rows_.assign(plan_.chunks.size(), kNothing);
  table_.clear();
  buckets_.assign(plan_.buckets.size() * 3, none<BufferId>());
  singles_.assign(static_cast<std::size_t>(Kind::grad_norm) + 1, none<BufferId>());
  const Program& program = plan_.programs[program_id];
  const auto bad = [&](std::uint32_t b, const std::string& message) {
    report.add("plan.form", "program " + std::to_string(program_id) + ": buffer " +
                                std::to_string(b) + " (" +
                                std::string(to_string(program.buffers[b].kind)) + ") " + message);
  };
  for (std::uint32_t b = 0; b < program.buffers.size(); ++b) {
    const Buffer& buffer = program.buffers[b];
    BufferId* const entry = place(buffer);
    if (entry == nullptr) {
      bad(b, "does not say what it holds");
      continue;
    }
    if (valid(*entry)) {
      bad(b, "holds " + report.buffer(buffer) + ", as buffer " + std::to_string(index(*entry)) +
                 " does");
    }
    *entry = static_cast<BufferId>(b);
    const bool lives_on = buffer.kind > Kind::saved;
    if (lives_on && (valid(buffer.alloc) || valid(buffer.free))) {
      bad(b, "lives as long as the job, but a task allocates or frees it");
    } else if (!lives_on && (!valid(buffer.alloc) || !valid(buffer.free))) {
      report.add("plan.release",
                 "program " + std::to_string(program_id) + ": " + report.buffer(buffer) +
                     (valid(buffer.alloc) ? " is never freed" : " is never allocated"));
    }
  }
}

BufferId BufferMap::value(ValueId value, std::uint32_t microbatch) const {
  return at(value_rows_, index(value), microbatch);
}

BufferId BufferMap::gradient(ValueId value, std::uint32_t microbatch, ChunkId consumer) const {
  const std::uint32_t key = edge(value, consumer);
  return key == kNothing ? none<BufferId>() : at(edge_rows_, key, microbatch);
}

BufferId BufferMap::saved(ChunkId chunk, std::uint32_t microbatch) const {
  return at(chunk_rows_, index(chunk), microbatch);
}

BufferId BufferMap::bucket(Kind kind, BucketId bucket) const {
  return buckets_[bucket_slot(kind, bucket)];
}

BufferId BufferMap::single(Kind kind) const {
  return singles_[static_cast<std::size_t>(kind)];
}

}  // namespace piper

// Finds a program's buffers by what they hold. Flat tables over the values, chunks and buckets that
// the program touches, times micro-batches.
#pragma once

#include <cstdint>
#include <vector>

#include "core/verify/report.h"

namespace piper {

class BufferMap {
 public:
  // Numbers each (chunk, input) of the plan, for gradients. Used for all programs, one after
  // another.
  explicit BufferMap(const Plan& plan, const ModelGraph& model);

  // Errors (plan.form): two buffers hold the same thing; a buffer lacks what its kind needs.
  void build(Report& report, std::uint32_t program);

  // none where the program has no such buffer.
  BufferId value(ValueId value, std::uint32_t microbatch) const;
  BufferId gradient(ValueId value, std::uint32_t microbatch, ChunkId consumer) const;
  BufferId saved(ChunkId chunk, std::uint32_t microbatch) const;
  BufferId bucket(Buffer::Kind kind, BucketId bucket) const;
  BufferId single(Buffer::Kind kind) const;

 private:
  static constexpr std::uint32_t kNothing = 0xffffffff;

  std::uint32_t edge(ValueId value, ChunkId consumer) const;
  BufferId* place(const Buffer& buffer);
  BufferId* row(std::vector<std::uint32_t>& rows, std::uint32_t key, std::uint32_t microbatch);
  BufferId at(const std::vector<std::uint32_t>& rows, std::uint32_t key,
              std::uint32_t microbatch) const;

  const Plan& plan_;
  std::size_t values_;
  std::vector<std::uint32_t> first_edge_;  // by ChunkId
  // First entry of a row of micro-batches in `table_`, or kNothing.
  std::vector<std::uint32_t> value_rows_, edge_rows_, chunk_rows_;
  std::vector<BufferId> table_;
  std::vector<BufferId> buckets_;  // three kinds a bucket
  std::vector<BufferId> singles_;  // by kind
};

}  // namespace piper

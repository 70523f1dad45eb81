// Finds a program's buffers by what they hold. Flat tables over the values, chunks and buckets that
// the program touches, times micro-batches.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/accesses.h"
#include "core/verify/chains.h"
#include "core/verify/report.h"

namespace piper {

class BufferMap {
 public:
  // Numbers each (chunk, input) of the plan, for gradients. Used for all programs, one after
  // another.
  explicit BufferMap(const Plan& plan, const ModelGraph& model);

  // Errors (plan.form): two buffers hold the same thing; a buffer lacks what its kind needs.
  void build(Report& report, std::uint32_t program, const Chains& chains);

  // none where the program has no such buffer.
  BufferId find(const Content& content) const;

 private:
  static constexpr std::uint32_t kNothing = 0xffffffff;

  std::uint32_t edge(ValueId value, ChunkId consumer) const;
  // By use of a value, of the kinds that are apart for each.
  std::vector<std::uint32_t>& rows_of(Buffer::Kind kind);
  const std::vector<std::uint32_t>& rows_of(Buffer::Kind kind) const {
    return const_cast<BufferMap*>(this)->rows_of(kind);
  }
  BufferId* place(const Buffer& buffer, const Chains& chains);
  BufferId* chain(std::vector<std::uint32_t>& rows, const Buffer& buffer,
                  const std::vector<std::uint32_t>& counts);
  BufferId* row(std::vector<std::uint32_t>& rows, std::uint32_t key, std::uint32_t microbatch);
  BufferId at(const std::vector<std::uint32_t>& rows, std::uint32_t key,
              std::uint32_t microbatch) const;

  const Plan& plan_;
  std::size_t values_;
  std::vector<std::uint32_t> first_edge_;  // by ChunkId
  // First entry of a row of micro-batches in `table_`, or kNothing.
  std::vector<std::uint32_t> value_rows_, edge_rows_, chunk_rows_;
  std::vector<std::uint32_t> routed_rows_, routed_edge_rows_, routed_gradient_rows_;
  // By bucket: first entry of a row of chains.
  std::vector<std::uint32_t> gathered_rows_, full_gradient_rows_;
  std::vector<BufferId> table_;
  std::vector<BufferId> buckets_;  // by bucket and kind
  std::vector<BufferId> singles_;  // by kind
};

}  // namespace piper

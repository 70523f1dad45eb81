// What a task must read and write, in order, by the chunk, bucket or value that it names: the table
// in plan.h, found from the model and the plan's tables alone.
#pragma once

#include <cstdint>
#include <vector>

#include "core/verify/buffer_map.h"
#include "core/verify/rules.h"

namespace piper {

class ExpectedAccesses {
 public:
  ExpectedAccesses(const Plan& plan, const ModelGraph& model, const ModelFacts& facts);

  // Goes on to another program; errors as BufferMap::build.
  void build(Report& report, std::uint32_t program);

  // Of a task that names what its op needs. Buffers that the program does not have are none.
  void find(const Task& task);
  const std::vector<BufferId>& reads() const { return reads_; }
  const std::vector<BufferId>& writes() const { return writes_; }

 private:
  void forward(const Task& task, const Chunk& chunk);
  void backward(const Task& task, const Chunk& chunk);
  void outputs(const Task& task, const Chunk& chunk, std::vector<BufferId>& list) const;
  void scalar(const Task& task);
  bool is_trained(BucketId bucket) const { return !plan_.buckets[index(bucket)].frozen; }
  void read(BufferId buffer) { reads_.push_back(buffer); }
  void write(BufferId buffer) { writes_.push_back(buffer); }
  void change(BufferId buffer) {
    read(buffer);
    write(buffer);
  }

  const Plan& plan_;
  const ModelGraph& model_;
  const ModelFacts& facts_;
  BufferMap map_;
  std::vector<std::vector<ChunkId>> consumers_;  // by ValueId, ascending
  const Program* program_ = nullptr;
  bool has_loss_ = false;  // the program computes the loss
  std::vector<BufferId> reads_, writes_;
};

}  // namespace piper

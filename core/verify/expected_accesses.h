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

  // Of a task of the program that names what its op needs. Buffers that the program does not have
  // are none. An all-to-all is known by the kind of what it reads first.
  void find(std::uint32_t task);
  const Chains& chains() const { return chains_; }
  const std::vector<BufferId>& reads() const { return reads_; }
  const std::vector<BufferId>& writes() const { return writes_; }

 private:
  void forward(std::uint32_t id);
  void recompute(std::uint32_t id);
  void backward(std::uint32_t id);
  void inputs(const Task& task);
  void parameters(std::uint32_t id);
  void outputs(const Task& task, std::vector<BufferId>& list) const;
  void gradients(const Task& task);
  void all_to_all(const Task& task);
  bool made_by_experts(ValueId value) const;
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
  Chains chains_;
  std::vector<std::vector<ChunkId>> consumers_;  // by ValueId, ascending
  const Program* program_ = nullptr;
  bool has_loss_ = false;  // the program computes the loss
  std::vector<BufferId> reads_, writes_;
};

}  // namespace piper

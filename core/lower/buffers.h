// The buffers of one program, and how a node finds those that it uses: a table lookup each.
#pragma once

#include <vector>

#include "core/config/config.h"
#include "core/lower/dag.h"
#include "core/lower/list_schedule.h"
#include "core/plan/plan.h"

namespace piper {

class BufferTable {
 public:
  // Makes all buffers of `program` into `out`.
  BufferTable(const Dag& dag, const ModelGraph& model, const Config& config,
              const Timeline& timeline, std::uint32_t program, Program& out);

  BufferId value(ValueId v, std::uint32_t m) const { return values_[index(v)].at(m); }
  BufferId gradient(ChunkId user, std::uint32_t input, std::uint32_t m) const {
    return gradients_[use(user, input)].at(m);
  }
  BufferId gradient(ChunkId user, ValueId v, std::uint32_t m) const {
    return gradient(user, input_of(user, v), m);
  }
  BufferId saved(ChunkId chunk, std::uint32_t m) const { return saved_[index(chunk)].at(m); }
  BufferId routed_input(ChunkId user, std::uint32_t input, std::uint32_t m) const {
    return routed_[use(user, input)].at(m);
  }
  BufferId routed_output(ValueId v, std::uint32_t m) const {
    return routed_outputs_[index(v)].at(m);
  }
  BufferId routed_gradient(ChunkId user, std::uint32_t input, std::uint32_t m) const {
    return routed_gradients_[use(user, input)].at(m);
  }
  BufferId parameter(BucketId b) const { return parameters_[index(b)]; }
  BufferId parameter_gradient(BucketId b) const { return parameter_gradients_[index(b)]; }
  BufferId optimizer(BucketId b) const { return optimizers_[index(b)]; }
  BufferId gathered(BucketId b, std::uint32_t chain) const { return gathered_[index(b)].at(chain); }
  BufferId full_gradient(BucketId b, std::uint32_t chain) const {
    return full_gradients_[index(b)].at(chain);
  }
  BufferId loss_sum() const { return loss_sum_; }
  BufferId token_count() const { return token_count_; }
  BufferId grad_norm() const { return grad_norm_; }

  std::uint32_t input_of(ChunkId user, ValueId v) const;
  // The values of the model's inputs that the program has.
  const std::vector<ValueId>& inputs() const { return inputs_; }

 private:
  // Buffers of one thing for each micro-batch (or chain): consecutive.
  struct Block {
    std::uint32_t first = 0xffffffff;
    const std::vector<std::uint32_t>* microbatches = nullptr;  // which; null: all

    bool made() const { return first != 0xffffffff; }
    BufferId at(std::uint32_t m) const;
  };

  std::uint32_t use(ChunkId user, std::uint32_t input) const {
    return first_use_[index(user)] + input;
  }
  BufferId add_persistent(Buffer::Kind kind, BucketId bucket, std::int64_t bytes);
  void add_block(Block& block, Buffer buffer, const std::vector<std::uint32_t>* microbatches,
                 std::uint32_t count);
  void add_value(ValueId v);
  void add_buckets();
  void add_chunk(ChunkId id);
  void add_routed(ChunkId id);
  void add_received(const Node& node);
  const std::vector<std::uint32_t>* keep(std::vector<std::uint32_t> microbatches);

  const Dag& dag_;
  const ModelGraph& model_;
  const Config& config_;
  std::uint32_t program_;
  Program& out_;
  std::vector<std::uint32_t> first_use_;                                 // by ChunkId
  std::vector<Block> values_, routed_outputs_;                           // by ValueId
  std::vector<Block> gradients_, routed_, routed_gradients_;             // by use
  std::vector<Block> saved_;                                             // by ChunkId
  std::vector<Block> gathered_, full_gradients_;                         // by BucketId, chains
  std::vector<BufferId> parameters_, parameter_gradients_, optimizers_;  // by BucketId
  std::vector<std::uint32_t> gathers_, reductions_;  // by BucketId: how many chains
  std::vector<ValueId> inputs_;
  std::vector<std::vector<std::uint32_t>> kept_;
  BufferId loss_sum_ = none<BufferId>(), token_count_ = none<BufferId>(),
           grad_norm_ = none<BufferId>();
};

}  // namespace piper

// Short names of nodes and tasks, for messages, pictures and `piper plan --explain`. A name says
// which node it is: no two of a plan have the same.
//
//     1F3@0                     forward of stage 1 (tag PP), micro-batch 3, by program 0; B, BI,
//     BW;
//                               R: recomputed
//     1.2F3@0                   of piece 2 of stage 1, where bucket bounds or recomputation cut the
//                               stage
//     c4.F3@0                   of chunk 4, which has no tag PP
//     send %4 m3@0              of value 4
//     recv grad %4 2 m3@0       of the gradient of value 4 that stage 2 computes
//     all_to_all 1F3 in@0       into the experts of 1F3; out: out of them
//     all_gather b0 chain 2@0   of bucket 0; reduce_scatter
//     all_reduce b0@0           of bucket 0; update
//     grad_norm@0               once a program: scalars, inputs
#pragma once

#include <string>
#include <vector>

#include "core/plan/plan.h"

namespace piper {

// What a node's name is made of.
struct NodeIdentity {
  Op op = Op::forward;
  std::uint32_t program = 0;
  std::uint32_t microbatch = 0;
  ChunkId chunk = none<ChunkId>();
  ValueId value = none<ValueId>();
  BucketId bucket = none<BucketId>();
  bool into_experts = false, backward = false;  // all_to_all
};

class NodeNames {
 public:
  NodeNames(const std::vector<Chunk>& chunks, const std::vector<std::string>& tag_names);
  NodeNames(const Plan& plan, const ModelGraph& model);

  const std::string& stage(ChunkId chunk) const { return stages_[index(chunk)]; }  // "1", "1.2"
  std::string whole_stage(ChunkId chunk) const;  // the same without the piece: "1"
  std::string of(const NodeIdentity& node) const;
  std::string of(const Plan& plan, std::uint32_t program, const Task& task) const;

 private:
  std::vector<std::string> stages_;  // by ChunkId
};

}  // namespace piper

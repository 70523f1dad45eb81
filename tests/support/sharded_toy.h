// Strategies made by hand for the toy model that shard, overlap and go both ways: what plans of
// every feature at once are made of.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/config/config.h"
#include "core/directives/directive.h"
#include "core/ir/model_graph.h"
#include "core/pipeline.h"

namespace piper::test {

struct ShardedShape {
  std::uint32_t pp = 2, dp = 2, microbatches = 3;
  std::uint32_t zero = 3;
  std::uint64_t bucket_bytes = 1;  // 1: a bucket a region; 0: a bucket a stage
  Span keep_gathered = Span::chain, reduce = Span::chain;
  std::uint32_t prefetch = 1;
  std::uint32_t hybrid = 0;  // ranks of a sharding group; 0: the whole place
  std::uint32_t ep = 0;      // ranks of an expert group; 0: no experts
  std::vector<std::uint32_t> expert_layers = {0, 3};
  bool tied = false, split_backward = false, gpipe = false;
  bool bidirectional = false;  // the second half of the micro-batches goes from the last rank
  bool ordered = true;         // by chains
  bool overlap = false;        // a forward with a backward, or two backwards of both ways
  std::uint32_t layers = 4;
};
std::string to_string(const ShardedShape& shape);

struct ShardedJob {
  Config config;
  ModelGraph model;
  Proposal proposal;
};
// Layers of experts have four parameters each.
ShardedJob sharded_job(const ShardedShape& shape);

Expected<Plans> plan(const ShardedJob& job);

// A shape of each kind, small enough for brute force.
std::vector<ShardedShape> small_shapes();

}  // namespace piper::test

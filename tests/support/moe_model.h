// A small model with experts, as capture would give it: what examples/upstream plans.
#pragma once

#include <cstdint>

#include "core/ir/model_graph.h"

namespace piper::test {

// By default the 1 B model of Piper's evaluation (arXiv 2606.11169: hidden 1024, 16 heads of 64, 8
// of keys and values, experts of 3584, four of them, two a token, sequences of 512) with 4 of its
// 16 layers.
struct MoeShape {
  std::int64_t layers = 4, dim = 1024, heads = 16, kv_heads = 8, head_dim = 64, ffn = 3584;
  std::int64_t experts = 4, experts_per_token = 2, vocab = 151936, seq = 512;
};

// Regions of layer l: attention with the router (tags layer, attention), the experts (layer, EP),
// and the sum of what they give (layer, combine). FLOPs are those of matrix products; saved bytes
// those of the inputs of these and of the weights of attention.
ModelGraph moe_model(const MoeShape& shape = {});

}  // namespace piper::test

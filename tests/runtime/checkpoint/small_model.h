// A Qwen3 model of two layers in a Hugging Face folder, small enough to be written in every test.
#pragma once

#include <ATen/ATen.h>

#include <map>
#include <string>

#include "core/config/config.h"
#include "core/ir/model_graph.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/models/hf_config.h"
#include "tests/runtime/data/fixture.h"

namespace piper::testing {

using Tensors = std::map<std::string, at::Tensor>;

inline Qwen3Config small_config() {
  return {.layers = 2, .dim = 8, .heads = 2, .kv_heads = 1, .head_dim = 4, .ffn = 12, .vocab = 300};
}

// The parameters of `config`, each with `value` in every element.
inline Tensors small_weights(const Qwen3Config& c, double value) {
  const auto full = [&](std::vector<std::int64_t> shape) {
    return at::full(shape, value, at::kFloat);
  };
  Tensors weights{{"model.embed_tokens.weight", full({c.vocab, c.dim})},
                  {"model.norm.weight", full({c.dim})}};
  if (!c.tied) {
    weights.emplace("lm_head.weight", full({c.vocab, c.dim}));
  }
  for (std::int64_t i = 0; i < c.layers; ++i) {
    const std::string layer = "model.layers." + std::to_string(i) + ".";
    weights.emplace(layer + "input_layernorm.weight", full({c.dim}));
    weights.emplace(layer + "post_attention_layernorm.weight", full({c.dim}));
    weights.emplace(layer + "self_attn.q_norm.weight", full({c.head_dim}));
    weights.emplace(layer + "self_attn.k_norm.weight", full({c.head_dim}));
    weights.emplace(layer + "self_attn.q_proj.weight", full({c.heads * c.head_dim, c.dim}));
    weights.emplace(layer + "self_attn.k_proj.weight", full({c.kv_heads * c.head_dim, c.dim}));
    weights.emplace(layer + "self_attn.v_proj.weight", full({c.kv_heads * c.head_dim, c.dim}));
    weights.emplace(layer + "self_attn.o_proj.weight", full({c.dim, c.heads * c.head_dim}));
    weights.emplace(layer + "mlp.gate_proj.weight", full({c.ffn, c.dim}));
    weights.emplace(layer + "mlp.up_proj.weight", full({c.ffn, c.dim}));
    weights.emplace(layer + "mlp.down_proj.weight", full({c.dim, c.ffn}));
  }
  return weights;
}

inline ModelGraph graph_of(const Tensors& weights) {
  ModelGraph graph;
  for (const auto& [name, tensor] : weights) {
    graph.parameters.push_back({name, DType::float32, tensor.sizes().vec(), false, {}});
  }
  return graph;
}

// Writes `folder`/config.json and model.safetensors.
inline void write_model(const Folder& folder, const std::string& name, const Qwen3Config& config,
                        const Tensors& weights) {
  folder.write(name + "/config.json", print_hf_config(config, DType::float32, 64, ""));
  ASSERT_TRUE(save_weights(folder.path(name + "/model.safetensors"), weights));
}

}  // namespace piper::testing

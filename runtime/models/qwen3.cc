#include "runtime/models/qwen3.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/silu.h>

#include <memory>
#include <string>

#include "runtime/autograd/dropout.h"
#include "runtime/model/refused.h"
#include "runtime/models/hugging_face_float64.h"
#include "runtime/models/qwen3_config.h"
#include "runtime/models/rms_norm.h"
#include "runtime/models/rotary.h"

namespace piper {
namespace {

using at::Tensor;

// Declares parameters below a common prefix.
class Scoped {
 public:
  Scoped(Build& build, const Qwen3Config& config, std::string prefix)
      : build_(build), config_(config), prefix_(std::move(prefix)) {}

  ParameterHandle matrix(const std::string& name, std::int64_t rows, std::int64_t columns,
                         std::source_location where = std::source_location::current()) const {
    return build_.parameter(prefix_ + name + ".weight", {rows, columns},
                            Init::normal(config_.init_deviation), where);
  }
  ParameterHandle norm(const std::string& name, std::int64_t size,
                       std::source_location where = std::source_location::current()) const {
    return build_.parameter(prefix_ + name + ".weight", {size}, Init::constant(1), where);
  }

 private:
  Build& build_;
  const Qwen3Config& config_;
  std::string prefix_;
};

bool goes_through_float32(const Qwen3Config& c, const Tensor& x) {
  return c.hugging_face_float64 && x.scalar_type() == at::kDouble;
}

Tensor normalise(const Qwen3Config& c, const Tensor& x, const Tensor& weight) {
  return goes_through_float32(c, x) ? rms_norm_through_float32(x, weight, c.norm_eps)
                                    : rms_norm(x, weight, c.norm_eps);
}

// Causal; [rows, heads, positions, head_dim].
Tensor mix(const Qwen3Config& c, const Tensor& query, const Tensor& key, const Tensor& value) {
  if (goes_through_float32(c, query)) {
    return attention_through_float32(query, key, value);
  }
  return at::scaled_dot_product_attention(query, key, value, /*attn_mask=*/{}, /*dropout_p=*/0,
                                          /*is_causal=*/true, /*scale=*/{},
                                          /*enable_gqa=*/c.kv_heads != c.heads);
}

// x + dropout(attention(norm(x))) of layer i
Tensor attention(Build& b, const Qwen3Config& c, std::int64_t i, const Scoped& layer,
                 const Tensor& x, const std::shared_ptr<const RotaryTables>& tables) {
  const auto scope = b.annotate("attention");
  const ParameterHandle norm = layer.norm("input_layernorm", c.dim);
  const ParameterHandle q_proj = layer.matrix("self_attn.q_proj", c.heads * c.head_dim, c.dim);
  const ParameterHandle k_proj = layer.matrix("self_attn.k_proj", c.kv_heads * c.head_dim, c.dim);
  const ParameterHandle v_proj = layer.matrix("self_attn.v_proj", c.kv_heads * c.head_dim, c.dim);
  const ParameterHandle o_proj = layer.matrix("self_attn.o_proj", c.dim, c.heads * c.head_dim);
  const ParameterHandle q_norm = layer.norm("self_attn.q_norm", c.head_dim);
  const ParameterHandle k_norm = layer.norm("self_attn.k_norm", c.head_dim);

  return b.region({x}, [=](const Tensors& in) {
    const std::int64_t rows = in[0].size(0);
    const std::int64_t positions = in[0].size(1);
    const Tensor h = normalise(c, in[0], norm);
    const auto heads = [&](const Tensor& weight) {
      return at::linear(h, weight).view({rows, positions, -1, c.head_dim});
    };
    const Tensor q = rotate(normalise(c, heads(q_proj), q_norm), tables);
    const Tensor k = rotate(normalise(c, heads(k_proj), k_norm), tables);
    const Tensor v = heads(v_proj);
    const Tensor mixed = mix(c, q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2));
    const Tensor out = at::linear(mixed.transpose(1, 2).reshape({rows, positions, -1}), o_proj);
    return Tensors{in[0] + dropout(out, c.dropout, 2 * static_cast<std::uint64_t>(i))};
  })[0];
}

// x + dropout(down(silu(gate(norm(x))) * up(norm(x)))) of layer i
Tensor mlp(Build& b, const Qwen3Config& c, std::int64_t i, const Scoped& layer, const Tensor& x) {
  const auto scope = b.annotate("mlp");
  const ParameterHandle norm = layer.norm("post_attention_layernorm", c.dim);
  const ParameterHandle gate = layer.matrix("mlp.gate_proj", c.ffn, c.dim);
  const ParameterHandle up = layer.matrix("mlp.up_proj", c.ffn, c.dim);
  const ParameterHandle down = layer.matrix("mlp.down_proj", c.dim, c.ffn);

  return b.region({x}, [=](const Tensors& in) {
    const Tensor h = normalise(c, in[0], norm);
    const Tensor gated = at::silu(at::linear(h, gate));
    const Tensor out = at::linear(gated * at::linear(h, up), down);
    return Tensors{in[0] + dropout(out, c.dropout, 2 * static_cast<std::uint64_t>(i) + 1)};
  })[0];
}

// The sum of the token losses of the logits head(norm(x)); in float32 where the model is narrower.
Tensor token_losses(Build& b, const Qwen3Config& c, const Tensor& x, const Tensor& labels,
                    const ParameterHandle& embedding) {
  const auto scope = b.annotate("head");
  const ParameterHandle norm = Scoped(b, c, "model.").norm("norm", c.dim);
  const ParameterHandle head =
      c.tied ? embedding : Scoped(b, c, "").matrix("lm_head", c.vocab, c.dim);

  return b.region({x, labels}, [=](const Tensors& in) {
    const Tensor logits = at::linear(normalise(c, in[0], norm), head);
    const Tensor wide = logits.scalar_type() == at::kBFloat16 ? logits.to(at::kFloat) : logits;
    return Tensors{at::cross_entropy_loss(wide.view({-1, c.vocab}), in[1].reshape({-1}),
                                          /*weight=*/{}, at::Reduction::Sum, kIgnoredLabel)};
  })[0];
}

}  // namespace

void build_qwen3(Build& b) {
  const Qwen3Config c = value_or_refuse(resolve_qwen3(b.config()));
  const std::int64_t positions = b.config().training.seq_len;
  const Tensor tokens = b.input("tokens", {positions}, at::kLong);
  const Tensor labels = b.input("labels", {positions}, at::kLong);
  const ParameterHandle embedding = Scoped(b, c, "model.").matrix("embed_tokens", c.vocab, c.dim);
  const auto tables = std::make_shared<const RotaryTables>(c.head_dim, c.rope_theta);

  Tensor h;
  {
    const auto scope = b.annotate("embed");
    h = b.region({tokens},
                 [=](const Tensors& in) { return Tensors{at::embedding(embedding, in[0])}; })[0];
  }
  for (std::int64_t i = 0; i < c.layers; ++i) {
    const auto scope = b.annotate("layer");
    const Scoped layer(b, c, "model.layers." + std::to_string(i) + ".");
    h = attention(b, c, i, layer, h, tables);
    h = mlp(b, c, i, layer, h);
  }
  b.loss(token_losses(b, c, h, labels, embedding));
}

}  // namespace piper

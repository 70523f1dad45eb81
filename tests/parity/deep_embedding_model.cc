// A model whose first region reads tokens alone and has several parameters: an embedding, a gain
// and a projection of its rows.
#include <ATen/core/Tensor.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tanh.h>

#include "runtime/model/build.h"

namespace {

using piper::Init;
using piper::ParameterHandle;
using piper::Tensors;

void build(piper::Build& b) {
  constexpr std::int64_t kVocab = 37, kNarrow = 5, kWide = 8;
  const std::int64_t seq_len = b.config().training.seq_len;
  const at::Tensor tokens = b.input("tokens", {seq_len}, at::kLong);
  const at::Tensor labels = b.input("labels", {seq_len}, at::kLong);
  const ParameterHandle table = b.parameter("table", {kVocab, kNarrow}, Init::normal(1));
  const ParameterHandle gain = b.parameter("gain", {kNarrow}, Init::normal(1));
  const ParameterHandle widen = b.parameter("widen", {kWide, kNarrow}, Init::normal(1));
  at::Tensor h = b.region({tokens}, [=](const Tensors& in) {
    return Tensors{at::linear(at::embedding(*table, in[0]).mul(*gain), *widen)};
  })[0];
  const std::int64_t layers = b.integer("layers", 4);
  for (std::int64_t i = 0; i < layers; ++i) {
    const auto scope = b.annotate("layer");
    const ParameterHandle weight =
        b.parameter("layers." + std::to_string(i) + ".weight", {kWide, kWide}, Init::normal(0.5));
    h = b.region(
        {h}, [weight](const Tensors& in) { return Tensors{at::linear(in[0], *weight).tanh()}; })[0];
  }
  b.loss(b.region({h, labels}, [](const Tensors& in) {
    return Tensors{in[0].mul(in[0]).sum(-1).mul(in[1].ne(-100)).sum()};
  })[0]);
}

}  // namespace

PIPER_MODEL("deep_embedding", build)

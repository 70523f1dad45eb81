// A model that passes ids through, as numbers times weights and as integers: the loss is the
// squared distance of every id to its label, so 0 exactly where tokens and labels of a row met, in
// every layer and micro-batch. Two values of equal shape go from layer to layer, one without a
// gradient.
#include <ATen/core/Tensor.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/sum.h>

#include "runtime/model/build.h"

namespace {

using piper::Tensors;

void build(piper::Build& b) {
  const std::int64_t seq_len = b.config().training.seq_len;
  const at::ScalarType dtype = b.dtype();
  const at::Tensor tokens = b.input("tokens", {seq_len}, at::kLong);
  const at::Tensor labels = b.input("labels", {seq_len}, at::kLong);
  Tensors h = b.region({tokens}, [dtype](const Tensors& in) {
    return Tensors{in[0].to(dtype), in[0].clone()};
  });
  const std::int64_t layers = b.integer("layers", 4);
  for (std::int64_t i = 0; i < layers; ++i) {
    const auto scope = b.annotate("layer");
    const piper::ParameterHandle weight =
        b.parameter("layers." + std::to_string(i) + ".weight", {1}, piper::Init::constant(1));
    h = b.region(h, [weight](const Tensors& in) {
      return Tensors{in[0].mul(*weight), in[1].clone()};
    });
  }
  b.loss(b.region({h[0], h[1], labels}, [dtype](const Tensors& in) {
    const at::Tensor counted = in[2].ne(-100).to(dtype);
    const at::Tensor apart = in[0].sub(in[2]), ids_apart = in[1].sub(in[2]).to(dtype);
    const at::Tensor distance = apart.mul(apart).add(ids_apart.mul(ids_apart));
    return Tensors{distance.mul(counted).sum()};
  })[0]);
}

}  // namespace

PIPER_MODEL("pass_through", build)

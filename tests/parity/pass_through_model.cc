// A model that passes ids through, as numbers times weights and as integers: the loss is the
// squared distance of the ids that each layer gives to their labels, so 0 exactly where tokens and
// labels of a row met, in every layer and micro-batch. Two values of equal shape go from layer to
// layer, one without a gradient; the other also goes to the end, so that it has the gradients of
// two readers.
#include <ATen/core/Tensor.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>

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
  Tensors ends;
  const std::int64_t layers = b.integer("layers", 4);
  for (std::int64_t i = 0; i < layers; ++i) {
    const auto scope = b.annotate("layer");
    const piper::ParameterHandle weight =
        b.parameter("layers." + std::to_string(i) + ".weight", {1}, piper::Init::constant(1));
    h = b.region(h, [weight](const Tensors& in) {
      return Tensors{in[0].mul(*weight), in[1].clone()};
    });
    ends.push_back(h[0]);
  }
  ends.push_back(h[1]);
  ends.push_back(labels);
  b.loss(b.region(ends, [dtype](const Tensors& in) {
    const at::Tensor& wanted = in.back();
    const at::Tensor counted = wanted.ne(-100).to(dtype);
    at::Tensor sum = at::zeros({}, counted.options());
    for (std::size_t i = 0; i + 1 < in.size(); ++i) {
      const at::Tensor apart = in[i].sub(wanted).to(dtype);
      sum = sum.add(apart.mul(apart).mul(counted).sum());
    }
    return Tensors{sum};
  })[0]);
}

}  // namespace

PIPER_MODEL("pass_through", build)

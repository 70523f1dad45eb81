// A model that calls a function of the runtime, which it does not link.
#include <ATen/ATen.h>

#include "runtime/autograd/dropout.h"
#include "runtime/model/build.h"

static void build(piper::Build& b) {
  const at::Tensor tokens = b.input("tokens", {b.config().training.seq_len}, at::kLong);
  const at::Tensor labels = b.input("labels", {1}, at::kLong);
  const auto table = b.parameter("table", {16, 8}, piper::Init::normal(0.2));
  const at::Tensor h = b.region({tokens}, [=](const piper::Tensors& in) {
    return piper::Tensors{piper::dropout(at::mean(at::embedding(table, in[0]), 1), 0.5, 1)};
  })[0];
  b.loss(b.region({h, labels}, [=](const piper::Tensors& in) {
    return piper::Tensors{
        at::cross_entropy_loss(in[0], in[1].view({-1}), {}, at::Reduction::Sum, -100)};
  })[0]);
}

PIPER_MODEL("dropout", build)

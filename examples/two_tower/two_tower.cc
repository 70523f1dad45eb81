// A model of one's own, in a shared library: no transformer, two inputs, two towers that meet in
// the last region only.
//
// One tower reads a row of tokens, the other a vector of numbers; the classes depend on both.
// Because values go straight from the region that makes them to the one that needs them, a strategy
// may run the towers on different devices.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mean.h>

#include <string>

#include "runtime/model/build.h"

namespace {

using at::Tensor;
using piper::Build;
using piper::Init;
using piper::ParameterHandle;
using piper::Tensors;

// x + gelu(x W + b), `depth` times.
Tensor tower(Build& b, const std::string& name, Tensor x, std::int64_t width, std::int64_t depth) {
  for (std::int64_t i = 0; i < depth; ++i) {
    const auto scope = b.annotate("layer", i);
    const std::string prefix = name + "." + std::to_string(i);
    const ParameterHandle weight =
        b.parameter(prefix + ".weight", {width, width}, Init::normal(0.2));
    const ParameterHandle bias = b.parameter(prefix + ".bias", {width}, Init::constant(0));
    x = b.region({x}, [=](const Tensors& in) {
      return Tensors{in[0] + at::gelu(at::linear(in[0], weight, *bias))};
    })[0];
  }
  return x;
}

void build(Build& b) {
  const std::int64_t positions = b.config().training.seq_len;
  const std::int64_t vocab = b.integer("vocab", 16);
  const std::int64_t width = b.integer("width", 32);
  const std::int64_t depth = b.integer("depth", 2);
  const std::int64_t numbers = b.integer("features", 4);
  const std::int64_t classes = b.integer("classes", 4);

  const Tensor tokens = b.input("tokens", {positions}, at::kLong);
  const Tensor features = b.input("features", {numbers}, b.dtype());
  const Tensor labels = b.input("labels", {1}, at::kLong);

  Tensor text;
  {
    const auto scope = b.annotate("text");
    const ParameterHandle table = b.parameter("text.embedding", {vocab, width}, Init::normal(0.2));
    text = b.region({tokens}, [=](const Tensors& in) {
      return Tensors{at::mean(at::embedding(table, in[0]), 1)};
    })[0];
    text = tower(b, "text", text, width, depth);
  }
  Tensor vector;
  {
    const auto scope = b.annotate("features");
    const ParameterHandle widen =
        b.parameter("features.widen", {width, numbers}, Init::normal(0.5));
    vector = b.region({features},
                      [=](const Tensors& in) { return Tensors{at::linear(in[0], widen)}; })[0];
    vector = tower(b, "features", vector, width, depth);
  }
  const auto scope = b.annotate("join");
  const ParameterHandle head = b.parameter("head", {classes, 2 * width}, Init::normal(0.2));
  b.loss(b.region({text, vector, labels}, [=](const Tensors& in) {
    const Tensor logits = at::linear(at::cat({in[0], in[1]}, 1), head);
    return Tensors{at::cross_entropy_loss(logits, in[2].view({-1}), {}, at::Reduction::Sum, -100)};
  })[0]);
}

}  // namespace

PIPER_MODEL("two_tower", build)

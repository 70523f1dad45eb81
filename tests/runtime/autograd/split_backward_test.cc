#include "runtime/autograd/split_backward.h"

#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

#include <atomic>
#include <functional>
#include <string>

#include "runtime/memory/account.h"

namespace piper {
namespace {

using Tensors = std::vector<at::Tensor>;

// A chunk: outputs from inputs and parameters.
struct Chunk {
  std::string name;
  Tensors inputs, parameters;
  std::function<Tensors(const Tensors& in, const Tensors& p)> run;
};

at::Tensor numbers(at::IntArrayRef shape, std::uint64_t seed, at::ScalarType dtype) {
  return at::randn(shape, at::detail::createCPUGenerator(seed), at::kDouble).to(dtype);
}

std::vector<Chunk> chunks(at::ScalarType dtype) {
  const auto x = [&](std::uint64_t seed) { return numbers({6, 8}, seed, dtype); };
  const auto w = [&](std::uint64_t seed) { return numbers({8, 8}, 100 + seed, dtype) * 0.3; };
  const at::Tensor tokens = at::arange(6) % 5;
  return {
      {"layer",
       {x(0)},
       {w(0), numbers({8}, 50, dtype), w(1)},
       [](const Tensors& in, const Tensors& p) {
         return Tensors{in[0] + at::linear(at::tanh(at::linear(in[0], p[0], p[1])), p[2])};
       }},
      {"a weight twice on a path",
       {x(0)},
       {w(0)},
       [](const Tensors& in, const Tensors& p) {
         return Tensors{at::linear(at::linear(in[0], p[0]), p[0])};
       }},
      {"a weight twice on a path, another layer between",
       {x(0)},
       {w(0), w(1)},
       [](const Tensors& in, const Tensors& p) {
         return Tensors{at::linear(at::tanh(at::linear(at::linear(in[0], p[0]), p[1])), p[0])};
       }},
      {"a block applied twice",
       {x(0)},
       {w(0), w(1)},
       [](const Tensors& in, const Tensors& p) {
         at::Tensor h = in[0];
         for (int i = 0; i < 2; ++i) {
           h = h + at::linear(at::relu(at::linear(h, p[0])), p[1]);
         }
         return Tensors{h};
       }},
      {"a weight times a gate",
       {x(0)},
       {numbers({8}, 60, dtype), w(0)},
       [](const Tensors& in, const Tensors& p) {
         return Tensors{at::linear(in[0] * p[0].sigmoid(), p[1] * p[0])};
       }},
      {"a tied embedding with an input beside it",
       {x(0)},
       {w(0)},
       [tokens](const Tensors& in, const Tensors& p) {
         return Tensors{at::linear(at::embedding(p[0], tokens) + in[0], p[0])};
       }},
      {"several outputs and inputs",
       {x(0), x(1)},
       {w(0), w(1)},
       [](const Tensors& in, const Tensors& p) {
         const Tensors parts = at::linear(in[0], p[0]).chunk(2, 1);
         return Tensors{parts[0] * 2, at::linear(in[1] * at::cat({parts[1], parts[0]}, 1), p[1])};
       }},
      {"no input that wants a gradient",
       {},
       {w(0), w(1)},
       [tokens](const Tensors&, const Tensors& p) {
         return Tensors{at::linear(at::embedding(p[0], tokens), p[1])};
       }},
      {"an input that is not used, an output without it",
       {x(0), x(1)},
       {w(0)},
       [](const Tensors& in, const Tensors& p) {
         return Tensors{at::linear(in[0], p[0]), p[0].exp()};
       }},
  };
}

struct Gradients {
  Tensors inputs, parameters;
};

Tensors leaves(const Tensors& values) {
  Tensors result;
  for (const at::Tensor& value : values) {
    result.push_back(value.detach().clone().set_requires_grad(true));
  }
  return result;
}

Tensors seeds(const Tensors& outputs) {
  Tensors result;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    result.push_back(numbers(outputs[i].sizes(), 900 + i, outputs[i].scalar_type()));
  }
  return result;
}

Tensors gradients_of(const Tensors& values) {
  Tensors result;
  for (const at::Tensor& value : values) {
    result.push_back(value.grad());
  }
  return result;
}

Gradients fused(const Chunk& chunk) {
  const Tensors in = leaves(chunk.inputs), parameters = leaves(chunk.parameters);
  const Tensors outputs = chunk.run(in, parameters);
  torch::autograd::backward(outputs, seeds(outputs));
  return {gradients_of(in), gradients_of(parameters)};
}

Gradients split(const Chunk& chunk) {
  const Tensors in = leaves(chunk.inputs), parameters = leaves(chunk.parameters);
  WeightGradients rest;
  Gradients result;
  {
    const Tensors outputs = chunk.run(in, parameters);
    result.inputs = backward_input(outputs, seeds(outputs), in, rest);
  }
  for (const at::Tensor& parameter : parameters) {
    EXPECT_FALSE(parameter.grad().defined()) << chunk.name << ": BI leaves parameters alone";
  }
  backward_weight(rest);
  result.parameters = gradients_of(parameters);
  return result;
}

void expect_same(const Tensors& a, const Tensors& b, const std::string& name) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].defined(), b[i].defined()) << name << ", gradient " << i;
    if (a[i].defined()) {
      EXPECT_TRUE(at::equal(a[i], b[i])) << name << ", gradient " << i;
    }
  }
}

TEST(SplitBackward, GivesTheBitsOfTheFusedBackward) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kBFloat16}) {
    for (const Chunk& chunk : chunks(dtype)) {
      const Gradients one = fused(chunk), two = split(chunk);

      expect_same(two.inputs, one.inputs, chunk.name);
      expect_same(two.parameters, one.parameters, chunk.name);
    }
  }
}

TEST(SplitBackward, LeavesAllToTheSecondHalfWhereNoInputWantsAGradient) {
  const Chunk chunk = chunks(at::kFloat)[7];
  const Tensors parameters = leaves(chunk.parameters);
  const Tensors outputs = chunk.run({}, parameters);
  WeightGradients rest;

  const Tensors gradients = backward_input(outputs, seeds(outputs), {}, rest);

  EXPECT_TRUE(gradients.empty());
  EXPECT_EQ(rest.roots.size(), 1u);
}

// Linear layers over an embedding: BI goes down to the embedding's output, and BW does each weight
// alone, with the bits of the fused backward.
TEST(SplitBackward, StopsAtAnEmbedding) {
  const Chunk chunk = chunks(at::kDouble)[7];
  const Gradients one = fused(chunk);
  const Tensors parameters = leaves(chunk.parameters);
  const at::Tensor tokens = at::arange(6) % 5;
  WeightGradients rest;
  {
    const at::Tensor embedded = at::embedding(parameters[0], tokens);
    const Tensors outputs{at::linear(embedded, parameters[1])};
    backward_input(outputs, seeds(outputs), {}, rest,
                   {torch::autograd::impl::gradient_edge(embedded)});
  }

  ASSERT_EQ(rest.roots.size(), 2u) << "the linear layer, and the embedding's output";
  const at::Tensor of_embedding = rest.gradients[0];
  EXPECT_EQ(of_embedding.sizes(), at::IntArrayRef({6, 8}));
  backward_weight(rest);
  expect_same(gradients_of(parameters), one.parameters, chunk.name);
}

// How many operators `run` calls.
int calls(const std::function<void()>& run) {
  static std::atomic<int> count{0};
  count = 0;
  const auto handle =
      at::addThreadLocalCallback(at::RecordFunctionCallback([](const at::RecordFunction& function) {
                                   count +=
                                       std::string(function.name()).starts_with("aten::") ? 1 : 0;
                                   return std::unique_ptr<at::ObserverContext>();
                                 }).scopes({at::RecordScope::FUNCTION}));
  run();
  at::removeCallback(handle);
  return count;
}

TEST(SplitBackward, CallsNoOperatorThatTheFusedBackwardDoesNot) {
  for (const Chunk& chunk : chunks(at::kDouble)) {
    const Tensors in = leaves(chunk.inputs), parameters = leaves(chunk.parameters);
    Tensors outputs = chunk.run(in, parameters);
    const Tensors gradients = seeds(outputs);
    const int fused = calls([&] { torch::autograd::backward(outputs, gradients); });
    for (const Tensors* list : {&in, &parameters}) {
      for (at::Tensor leaf : *list) {
        leaf.mutable_grad().reset();
      }
    }
    outputs = chunk.run(in, parameters);
    WeightGradients rest;

    const int first = calls([&] { backward_input(outputs, gradients, in, rest); });
    const int second = calls([&] { backward_weight(rest); });

    EXPECT_GT(fused, 0) << chunk.name;
    EXPECT_LE(first + second, fused) << chunk.name << ": " << first << " and " << second;
  }
}

// Between the halves only what BW needs is held: per linear layer its input and the gradient that
// arrives, not the rest of the graph.
TEST(SplitBackward, HoldsOnlyWhatTheSecondHalfNeeds) {
  install_counting_allocator();
  const std::shared_ptr<Account> account = open_account();
  const at::Tensor w = at::ones({64, 64}).set_requires_grad(true);
  const at::Tensor x = at::ones({1024, 64}).set_requires_grad(true);
  constexpr std::int64_t kValue = 1024 * 64 * 4;
  WeightGradients rest;
  {
    const Charge charge(account.get(), MemoryKind::activation);
    at::Tensor h = x;
    for (int i = 0; i < 6; ++i) {
      h = h.sin();
    }
    Tensors outputs{at::linear(h, w)};
    h.reset();
    Tensors gradients{at::ones_like(outputs[0])};
    const at::Tensor root = std::move(outputs[0]);
    const Tensors got = backward_input({root}, gradients, {x}, rest);
    EXPECT_TRUE(got[0].defined());
  }

  EXPECT_LE(account->live(), 2 * kValue) << "the layer's input and its output's gradient";
  backward_weight(rest);
  EXPECT_EQ(account->live(), 0);
  EXPECT_TRUE(w.grad().defined());
}

}  // namespace
}  // namespace piper

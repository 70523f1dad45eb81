#include "runtime/autograd/dropout.h"

#include <gtest/gtest.h>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>

#include <string>

#include "runtime/memory/account.h"
#include "runtime/models/find_model.h"
#include "tests/runtime/models/running_model.h"

namespace piper {
namespace {

constexpr std::uint64_t kPlace = 3;

// What is kept of ones: 0 where cleared, else 1 / (1 - probability).
at::Tensor mask(at::IntArrayRef sizes, double probability, const DropoutContext& context,
                std::uint64_t place = kPlace, at::ScalarType type = at::kDouble) {
  const InDropoutContext in(context);
  return dropout(at::ones(sizes, type), probability, place);
}

// The mask is made again, by its key.
TEST(Dropout, OfTheBackwardIsThatOfTheForward) {
  const at::Tensor x = at::ones({4, 5, 6}, at::kDouble).set_requires_grad(true);
  at::Tensor y;
  {
    const InDropoutContext in({.seed = 1, .step = 2, .first_row = 3});
    y = dropout(x, 0.5, kPlace);
  }
  // Other micro-batches draw in between.
  for (std::int64_t row = 0; row < 4; ++row) {
    mask({4, 5, 6}, 0.5, {.seed = 1, .step = 2, .first_row = 10 * row});
  }

  torch::autograd::backward({y}, {at::ones_like(y)});

  EXPECT_TRUE(at::equal(x.grad(), y.detach()));
  EXPECT_TRUE(at::equal(y.detach().ne(0), y.detach().eq(2)));
  EXPECT_GT(y.eq(0).sum().item<std::int64_t>(), 0);
}

TEST(Dropout, DependsOnSeedStepPlaceRowAndElement) {
  const DropoutContext context{.seed = 1, .step = 2, .first_row = 3};
  const at::Tensor first = mask({8, 40}, 0.5, context);

  EXPECT_TRUE(at::equal(first, mask({8, 40}, 0.5, context)));
  EXPECT_FALSE(at::equal(first, mask({8, 40}, 0.5, {.seed = 2, .step = 2, .first_row = 3})));
  EXPECT_FALSE(at::equal(first, mask({8, 40}, 0.5, {.seed = 1, .step = 3, .first_row = 3})));
  EXPECT_FALSE(at::equal(first, mask({8, 40}, 0.5, {.seed = 1, .step = 2, .first_row = 4})));
  EXPECT_FALSE(at::equal(first, mask({8, 40}, 0.5, context, kPlace + 1)));
  EXPECT_FALSE(at::equal(first[0], first[1]));
  EXPECT_FALSE(at::equal(first.narrow(1, 0, 20), first.narrow(1, 20, 20)));
}

TEST(Dropout, OfRowsIsTheSameHoweverTheBatchIsCut) {
  const at::Tensor whole = mask({7, 5, 3}, 0.3, {.step = 4});
  for (std::int64_t first = 0; first < 7; ++first) {
    const at::Tensor rest = mask({7 - first, 5, 3}, 0.3, {.step = 4, .first_row = first});
    EXPECT_TRUE(at::equal(rest, whole.narrow(0, first, 7 - first))) << first;
  }
}

TEST(Dropout, IsTheSameInEveryTypeAndOnAnyNumberOfThreads) {
  const DropoutContext context{.seed = 9, .step = 1};
  const at::Tensor one = mask({3, 100'000}, 0.5, context);
  const int threads = at::get_num_threads();
  at::set_num_threads(threads == 1 ? 2 : 1);
  EXPECT_TRUE(at::equal(mask({3, 100'000}, 0.5, context), one));
  at::set_num_threads(threads);
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    EXPECT_TRUE(at::equal(mask({3, 100'000}, 0.5, context, kPlace, type).to(at::kDouble), one));
  }
}

TEST(Dropout, ClearsItsShareAndKeepsTheMean) {
  for (const double probability : {0.1, 0.5, 0.9}) {
    const at::Tensor kept = mask({100, 10'000}, probability, {.seed = 5});
    const double cleared = kept.eq(0).to(at::kDouble).mean().item<double>();
    // Five standard errors of a million draws.
    EXPECT_NEAR(cleared, probability, 5 * std::sqrt(probability * (1 - probability) / 1e6));
    EXPECT_DOUBLE_EQ(kept.max().item<double>(), 1 / (1 - probability));
  }
}

TEST(Dropout, IsNothingWhileEvaluatingAndForZero) {
  const at::Tensor x = at::ones({2, 3});
  const InDropoutContext in({.training = false});
  EXPECT_TRUE(dropout(x, 0.5, kPlace).is_same(x));
  const InDropoutContext training({.training = true});
  EXPECT_TRUE(dropout(x, 0, kPlace).is_same(x));
}

TEST(Dropout, ContextsNest) {
  const InDropoutContext outer({.seed = 1});
  const at::Tensor before = dropout(at::ones({2, 50}), 0.5, kPlace);
  { const InDropoutContext inner({.seed = 2}); }
  EXPECT_TRUE(at::equal(dropout(at::ones({2, 50}), 0.5, kPlace), before));
}

TEST(Dropout, RefusesOtherProbabilitiesAndTensors) {
  for (const double wrong : {-0.1, 1.0, 2.0, std::nan("")}) {
    EXPECT_THROW(dropout(at::ones({2, 3}), wrong, kPlace), c10::Error) << wrong;
  }
  EXPECT_THROW(dropout(at::ones({2, 3}, at::kLong), 0.5, kPlace), c10::Error);
  EXPECT_THROW(dropout(at::ones({}), 0.5, kPlace), c10::Error);
}

TEST(Dropout, TakesRowsWithoutElements) {
  EXPECT_EQ(mask({0, 3}, 0.5, {}).numel(), 0);
  EXPECT_EQ(mask({3, 0}, 0.5, {}).numel(), 0);
}

ModelGraph captured(double dropout_probability) {
  Config config;
  config.model.flavor = "debug";
  config.model.dropout = dropout_probability;
  config.training.seq_len = 16;
  return value_of(build_model(config, true)).graph;
}

TEST(Dropout, KeepsNothingForTheBackward) {
  const ModelGraph with = captured(0.1), without = captured(0);
  ASSERT_EQ(with.regions.size(), without.regions.size());
  for (std::size_t i = 0; i < with.regions.size(); ++i) {
    EXPECT_EQ(with.regions[i].saved_bytes, without.regions[i].saved_bytes) << "region " << i;
    EXPECT_EQ(with.regions[i].pending_bytes, without.regions[i].pending_bytes) << "region " << i;
  }

  install_counting_allocator();
  const auto account = open_account();
  const at::Tensor x = at::ones({8, 100}).set_requires_grad(true);
  {
    const Charge charge(account.get(), MemoryKind::activation);
    const auto graph = dropout(x, 0.5, kPlace).grad_fn();
    EXPECT_EQ(account->live(), 0);
  }
}

}  // namespace
}  // namespace piper

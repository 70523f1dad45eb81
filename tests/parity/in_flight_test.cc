// How many activations of a stage a rank holds at once while it trains, counted in the run, against
// the formulas of docs/schedules.md.
//
// The model has a layer a stage. Each forward of a layer leaves a token in its autograd graph, at
// an operation on the layer's weight: it goes when the backward, or the weights' half of a split
// one, has run that operation.
#include <ATen/ops/embedding.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <atomic>
#include <string>

#include "runtime/exec/create_engine.h"
#include "tests/parity/harness.h"

namespace piper {
namespace {

using testing::Case;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Counter {
  std::atomic<int> live{0}, peak{0}, forwards{0};
  std::atomic<int> wholes{0}, input_halves{0}, weight_halves{0};  // backwards of a layer
  void enter() {
    ++forwards;
    const int now = ++live;
    peak = std::max(peak.load(), now);  // one thread of a rank runs its forwards
  }
};

// Whose model is being built; null for a capture.
std::shared_ptr<Counter> building;

class Hold : public torch::autograd::Function<Hold> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            std::shared_ptr<Counter> counter) {
    if (counter) {
      static double nothing = 0;
      counter->enter();
      context->saved_data["counter"] = reinterpret_cast<std::int64_t>(counter.get());
      context->save_for_backward(
          {weight, at::from_blob(
                       &nothing, {1}, [counter](void*) { --counter->live; }, at::kDouble)});
    }
    return x.clone();
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    auto& counter = *reinterpret_cast<Counter*>(context->saved_data["counter"].toInt());
    const bool input = context->needs_input_grad(0), weight = context->needs_input_grad(1);
    ++(!input ? counter.weight_halves : !weight ? counter.input_halves : counter.wholes);
    at::Tensor of_weight;
    if (weight) {
      of_weight = at::zeros_like(context->get_saved_variables()[0]);
    }
    return {gradients[0], of_weight, at::Tensor()};
  }
};

void layers(Build& b) {
  constexpr std::int64_t kWidth = 4;
  const at::Tensor tokens = b.input("tokens", {b.config().training.seq_len}, at::kLong);
  const at::Tensor labels = b.input("labels", {b.config().training.seq_len}, at::kLong);
  const ParameterHandle table =
      b.parameter("table", {testing::kVocab, kWidth}, Init::constant(0.5));
  at::Tensor h = b.region(
      {tokens}, [table](const Tensors& in) { return Tensors{at::embedding(*table, in[0])}; })[0];
  const std::int64_t count = b.integer("layers", 4);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto scope = b.annotate("layer");
    const ParameterHandle weight = b.parameter("layers." + std::to_string(i) + ".weight",
                                               {kWidth, kWidth}, Init::constant(0.1));
    h = b.region({h}, [weight, counter = building](const Tensors& in) {
      return Tensors{Hold::apply(at::linear(in[0], *weight), *weight, counter)};
    })[0];
  }
  b.loss(b.region({h, labels}, [](const Tensors& in) {
    return Tensors{in[0].sum(-1).mul(in[1].ne(-100)).sum()};
  })[0]);
}

// R, V, M.
using Formula = std::uint32_t (*)(std::uint32_t, std::uint32_t, std::uint32_t);

struct Held {
  const char *plugin, *schedule;
  std::uint32_t stages_per_rank;
  Formula most;
};

std::ostream& operator<<(std::ostream& out, const Held& held) {
  return out << held.schedule;
}

std::uint32_t equal_group(std::uint32_t r, std::uint32_t m) {
  return m / std::max(1U, m / r);
}

// For M of 2R and 3R.
const Held kHeld[] = {
    {"interleaved1f1b", "gpipe", 1, [](auto, auto, auto m) { return m; }},
    {"interleaved1f1b", "1f1b", 1, [](auto r, auto, auto) { return r; }},
    {"interleaved1f1b", "looped_bfs", 2, [](auto, auto v, auto m) { return m * v; }},
    {"interleaved1f1b", "interleaved", 2,
     [](auto r, auto v, auto m) { return (v - 1) * equal_group(r, m) + 2 * r - 1; }},
    {"zerobubble", "zb1p", 1, [](auto r, auto, auto) { return r; }},
    {"zerobubble", "zb_h1", 1, [](auto r, auto, auto) { return r; }},
    {"zerobubble", "interleaved_zb", 2,
     [](auto r, auto v, auto m) { return (v - 1) * equal_group(r, m) + r; }},
    {"zerobubble", "zbv", 2, [](auto r, auto, auto) { return 2 * r; }},
    {"zerobubble", "v_zb", 2, [](auto r, auto, auto) { return 2 * r; }},
    {"zerobubble", "v_half", 2, [](auto r, auto, auto) { return r / 2 * 2 + 2; }},
    {"zerobubble", "v_min", 2, [](auto r, auto, auto) { return 2 * ((r + 4) / 3); }},
    {"dualpipe", "dualpipev", 2, [](auto r, auto, auto m) { return std::min(2 * m, 2 * r + 1); }},
    {"dualpipe", "dualpipe", 2, [](auto r, auto, auto) { return r + 1; }},
};

// What each rank did in a step of the schedule.
std::vector<std::shared_ptr<Counter>> counted(const Case& c) {
  building.reset();
  const auto job = make_job(c, layers);
  EXPECT_TRUE(job.has_value()) << to_string(c) << '\n' << to_string(job.error());
  std::vector<std::shared_ptr<Counter>> counters;
  const auto engine = create_engine(*job, [&] {
    building = counters.emplace_back(std::make_shared<Counter>());
    return build_model(job->config, layers, /*measure=*/false);
  });
  EXPECT_TRUE(engine.has_value()) << to_string(engine.error());
  for (const std::shared_ptr<Counter>& counter : counters) {
    counter->forwards = 0;  // building the model runs it, too
  }
  const Batch batch = testing::uneven_batches(*job)(1);
  const auto result = (*engine)->train_step(testing::feed(job->plans.train, batch, 1));
  EXPECT_TRUE(result.has_value()) << to_string(c) << '\n' << to_string(result.error());
  return counters;
}

class InFlight : public ::testing::TestWithParam<Held> {};

TEST_P(InFlight, AreAsManyAsTheFormulaSays) {
  const Held& held = GetParam();
  const bool both_ways = std::string(held.schedule) == "dualpipe";
  for (const std::uint32_t ranks : {2U, 3U, 4U}) {
    for (const std::uint32_t m : {2 * ranks, 3 * ranks}) {
      if (both_ways && (ranks % 2 != 0 || m % 2 != 0)) {
        continue;
      }
      Case c;
      c.plugin = held.plugin, c.schedule = held.schedule;
      c.stages_per_rank = held.stages_per_rank;
      c.pp = ranks, c.microbatches = m;
      const std::uint32_t stages = both_ways ? ranks : ranks * held.stages_per_rank;
      c.model = {"name = \"layers\"", "layers = " + std::to_string(stages)};

      int most = 0;
      for (const std::shared_ptr<Counter>& counter : counted(c)) {
        EXPECT_EQ(counter->live, 0) << "a graph is not freed: " << to_string(c);
        most = std::max(most, counter->peak.load());
      }
      EXPECT_EQ(most, static_cast<int>(held.most(ranks, held.stages_per_rank, m))) << to_string(c);
    }
  }
}

// Also of the first stage, whose I ends at the embedding.
TEST(Halves, AreDoneOnceEach) {
  Case c;
  c.plugin = "zerobubble", c.schedule = "zb1p";
  c.pp = 3, c.microbatches = 5;
  c.model = {"name = \"layers\"", "layers = 3"};
  for (const std::shared_ptr<Counter>& counter : counted(c)) {
    EXPECT_EQ(counter->input_halves, 5);
    EXPECT_EQ(counter->weight_halves, 5);
    EXPECT_EQ(counter->wholes, 0);
  }
}

// However many micro-batches are in flight.
TEST(Recomputation, HoldsTheGraphOfOneLayerAtATime) {
  for (const char* const schedule : {"1f1b", "gpipe", "interleaved"}) {
    Case c;
    c.schedule = schedule;
    c.stages_per_rank = c.schedule == "interleaved" ? 2 : 1;
    c.pp = 2, c.microbatches = 4;
    c.model = {"name = \"layers\"", "layers = 8"};
    c.sections = {"[activation_checkpoint]\nmode = \"full\""};
    for (const std::shared_ptr<Counter>& counter : counted(c)) {
      EXPECT_EQ(counter->peak, 1) << schedule;
      EXPECT_EQ(counter->wholes, 4 * 4) << schedule;  // layers of the rank x micro-batches
    }
  }
}

// The first half finds what was recomputed, and leaves the second half its share.
TEST(Recomputation, IsOnceForBothHalves) {
  Case c;
  c.plugin = "zerobubble", c.schedule = "zbv", c.stages_per_rank = 2;
  c.pp = 2, c.microbatches = 4;
  c.model = {"name = \"layers\"", "layers = 8"};
  c.sections = {"[activation_checkpoint]\nmode = \"full\""};
  for (const std::shared_ptr<Counter>& counter : counted(c)) {
    EXPECT_EQ(counter->forwards, 2 * 4 * 4);
    EXPECT_EQ(counter->input_halves, 4 * 4);
    EXPECT_EQ(counter->weight_halves, 4 * 4);
    EXPECT_EQ(counter->live, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Pipeline, InFlight, ::testing::ValuesIn(kHeld), [](const auto& instance) {
  const std::string name = instance.param.schedule;
  return name == "1f1b" ? "one_f_one_b" : name;
});

}  // namespace
}  // namespace piper

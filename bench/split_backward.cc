// The two halves of a backward pass beside the whole: of one transformer layer, and of a stage of
// four with a micro-batch of two sequences, whose activations no cache holds.
//
//   piper_bench_split_backward [ROUNDS]
//
// Whole and halves take turns, each on a forward pass of its own; a ratio is the median over the
// rounds, and the ratio of the fastest stands beside it. One thread, and its processor time.
#include <ATen/Parallel.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

#include <cstdlib>
#include <ctime>
#include <vector>

#include "bench/report.h"
#include "core/config/load.h"
#include "runtime/autograd/split_backward.h"
#include "runtime/memory/account.h"
#include "runtime/model/build.h"
#include "runtime/models/find_model.h"

namespace piper {
namespace {

using bench::least;
using bench::median;
using bench::must;

constexpr std::int64_t kWidth = 256, kSequence = 256;

double now() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

class Stage {
 public:
  Stage(const Config& config, std::int64_t rows)
      : model_(must(build_model(config, /*measure=*/false))) {
    for (std::size_t i = 0; i < model_.parameters.size(); ++i) {
      const Parameter& parameter = model_.graph.parameters[i];
      at::Tensor& leaf = *model_.parameters[i];
      leaf = initial_value(model_.inits[i], parameter.name, parameter.shape, at::kFloat, 0)
                 .requires_grad_();
      leaf.mutable_grad() = at::zeros_like(leaf.detach());
    }
    input_ = at::randn({rows, kSequence, kWidth}).requires_grad_();
    gradient_ = at::randn({rows, kSequence, kWidth});
  }

  // Of each layer attention and MLP; not the embedding before, nor the head after.
  at::Tensor forward() {
    at::Tensor h = input_;
    for (std::size_t r = 1; r + 1 < model_.regions.size(); ++r) {
      h = model_.regions[r]({h})[0];
    }
    return h;
  }

  double whole() {
    torch::autograd::edge_list roots{torch::autograd::impl::gradient_edge(forward())};
    const double start = now();
    torch::autograd::Engine::get_default_engine().execute(roots, {gradient_}, /*keep_graph=*/false,
                                                          /*create_graph=*/false,
                                                          /*accumulate_grad=*/true);
    input_.mutable_grad().reset();
    return now() - start;
  }

  std::pair<double, double> halves() {
    std::vector<at::Tensor> outputs{forward()};
    WeightGradients later;
    const double start = now();
    backward_input(outputs, {gradient_}, {input_}, later);
    outputs.clear();
    const double between = now();
    backward_weight(later);
    return {between - start, now() - between};
  }

 private:
  LiveModel model_;
  at::Tensor input_, gradient_;
};

void run(const std::string& name, std::int64_t layers, std::int64_t rows, int rounds) {
  const bench::Scratch scratch;
  const std::string text =
      "[model]\nname = \"qwen3\"\nlayers = " + std::to_string(layers) +
      "\ndim = 256\nheads = 4\nkv_heads = 4\nhead_dim = 64\nffn = 688\nvocab = 256\n[training]\n"
      "dataset = \"jsonl\"\ndataset_path = [\"none\"]\nseq_len = 256\nglobal_batch_size = 16\n";
  Stage stage(must(load_config(scratch.write("job.toml", text), {})), rows);
  std::vector<double> whole, input, weight, both, ratios;
  stage.whole();
  stage.halves();
  for (int round = 0; round < rounds; ++round) {
    whole.push_back(stage.whole());
    const auto [first, second] = stage.halves();
    input.push_back(first);
    weight.push_back(second);
    both.push_back(first + second);
    ratios.push_back(both.back() / whole.back());
  }
  const auto print = [&](const char* metric, double value, const char* format,
                         const char* target = "") {
    bench::print("split_backward", name + '_' + metric, value, format, target);
  };
  print("whole_ms_min", least(whole) * 1e3, "%.2f");
  print("input_half_ms_min", least(input) * 1e3, "%.2f");
  print("weight_half_ms_min", least(weight) * 1e3, "%.2f");
  print("halves_over_whole", median(ratios), "%.3f", "<= 1.03");
  print("halves_over_whole_of_fastest", least(both) / least(whole), "%.3f", "<= 1.03");
}

}  // namespace
}  // namespace piper

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 40;
  at::set_num_threads(1);
  piper::install_counting_allocator();  // as in a run
  piper::run("layer", 1, 1, rounds > 0 ? 5 * rounds : 200);
  piper::run("stage", 4, 2, rounds > 0 ? rounds : 40);
  return 0;
}

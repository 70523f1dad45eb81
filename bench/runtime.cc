// The training numbers: Piper beside a plain LibTorch loop, one rank beside two, the quick start,
// `piper check`.
//
//   piper_bench_runtime [--rounds N] [--steps N] [--no-quickstart] [--python PYTHON]
//
// Prints `bench runtime METRIC = VALUE (target TARGET)`. Ways of training take turns within a
// round, so that a slow moment of the machine falls on all of them; a ratio is the median over the
// rounds, and the ratio of the fastest steps stands beside it. Nothing here passes or fails. With
// PYTHON, which must have PyTorch, lm.py takes part.
#include <ATen/Parallel.h>
#include <ATen/ops/full.h>
#include <c10/core/GradMode.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "bench/job.h"
#include "runtime/model/build.h"
#include "runtime/models/find_model.h"

namespace piper {
namespace {

using bench::least;
using bench::median;
using bench::must;
using bench::now;
using bench::numbers;
using bench::output_of;
using bench::Scratch;

// Of bench::language_model.
constexpr std::int64_t kSequence = 256, kRows = 16, kMicrobatches = 8;
constexpr double kLr = 0.1;

struct Options {
  int rounds = 5;
  int steps = 3;  // a round, after one that is not counted in the first
  bool quickstart = true;
  std::string python;
};

void print(const std::string& metric, double value, const char* format, const std::string& target) {
  bench::print("runtime", metric, value, format, target);
}

Job pipeline_of(const Scratch& scratch, int pp) {
  return bench::make_job(
      scratch, bench::language_model(pp) + (pp > 1 ? "[[strategy]]\nplugin = \"interleaved1f1b\"\n"
                                                     "schedule = \"1f1b\"\n"
                                                   : ""));
}

// The shortest program that trains the model with LibTorch: forward, backward, gradients added up,
// SGD.
class PlainLoop {
 public:
  explicit PlainLoop(const Config& config) : model_(must(build_model(config, false))) {
    for (std::size_t i = 0; i < model_.parameters.size(); ++i) {
      const Parameter& parameter = model_.graph.parameters[i];
      *model_.parameters[i] =
          initial_value(model_.inits[i], parameter.name, parameter.shape, at::kFloat, 0)
              .requires_grad_();
    }
  }

  double step(const Batch& batch) {
    const double scale = 1.0 / (kRows * kSequence);
    double loss = 0;
    for (std::int64_t m = 0; m < kMicrobatches; ++m) {
      std::vector<at::Tensor> values(model_.graph.values.size());
      for (const auto& [id, tensor] : batch) {
        values[index(id)] = tensor.narrow(0, m * kRows / kMicrobatches, kRows / kMicrobatches);
      }
      for (std::size_t r = 0; r < model_.regions.size(); ++r) {
        Tensors inputs;
        for (const ValueId id : model_.graph.regions[r].inputs) {
          inputs.push_back(values[index(id)]);
        }
        const Tensors outputs = model_.regions[r](inputs);
        for (std::size_t i = 0; i < outputs.size(); ++i) {
          values[index(model_.graph.regions[r].outputs[i])] = outputs[i];
        }
      }
      const at::Tensor& sum = values[index(model_.graph.loss)];
      sum.backward(at::full({}, scale, sum.options()));
      loss += sum.item<double>() * scale;
    }
    const c10::NoGradGuard no_grad;
    for (const auto& parameter : model_.parameters) {
      parameter->add_(parameter->grad(), -kLr);
      parameter->mutable_grad().reset();
    }
    return loss;
  }

 private:
  LiveModel model_;
};

// One way of training: seconds of all steps, of each round's fastest, and of processor time in each
// round (which other work on the machine hardly changes).
struct Way {
  std::string name;
  std::function<std::vector<double>(int steps)> run;
  std::vector<double> all = {}, rounds = {}, processor = {};
};

// Of this process, all threads.
double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::vector<double> timed(int steps, const std::function<void()>& step) {
  std::vector<double> seconds;
  for (int i = 0; i < steps; ++i) {
    const double start = now();
    step();
    seconds.push_back(now() - start);
  }
  return seconds;
}

void report_ratio(const std::string& metric, const Way& a, const Way& b,
                  const std::string& target) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < a.rounds.size(); ++i) {
    ratios.push_back(a.rounds[i] / b.rounds[i]);
  }
  print(metric, median(ratios), "%.3f", target);
  print(metric + "_of_fastest", least(a.all) / least(b.all), "%.3f", target);
}

void training(const Options& options, const Scratch& scratch) {
  at::set_num_threads(1);
  const Job one = pipeline_of(scratch, 1);
  const Batch batch = bench::random_batch(one);
  PlainLoop plain(one.config);
  bench::Run one_rank(one, batch);
  bench::Run two_ranks(pipeline_of(scratch, 2), batch);

  std::vector<Way> ways;
  ways.push_back({"plain_loop", [&](int n) { return timed(n, [&] { plain.step(batch); }); }});
  ways.push_back({"one_rank", [&](int n) { return timed(n, [&] { one_rank.step(); }); }});
  ways.push_back({"two_ranks", [&](int n) { return timed(n, [&] { two_ranks.step(); }); }});
  if (!options.python.empty()) {
    const std::string script = std::string(PIPER_SOURCE_DIR) + "/bench/lm.py";
    ways.push_back({"pytorch", [&, script](int n) {
                      return numbers(output_of("'" + options.python + "' '" + script + "' " +
                                               std::to_string(n)));
                    }});
  }
  for (Way& way : ways) {
    way.run(1);  // the first step of a process allocates
  }
  for (int round = 0; round < options.rounds; ++round) {
    for (Way& way : ways) {
      const double before = processor_seconds();
      const std::vector<double> seconds = way.run(options.steps);
      way.processor.push_back(processor_seconds() - before);
      way.rounds.push_back(least(seconds));
      way.all.insert(way.all.end(), seconds.begin(), seconds.end());
    }
  }

  for (const Way& way : ways) {
    print(way.name + "_step_ms_min", least(way.all) * 1e3, "%.1f", "");
    print(way.name + "_step_ms_median", median(way.all) * 1e3, "%.1f", "");
  }
  report_ratio("one_rank_over_plain_loop", ways[1], ways[0], "<= 1.03");
  print("one_rank_over_plain_loop_of_processor_time",
        median(ways[1].processor) / median(ways[0].processor), "%.3f", "<= 1.03");
  print("two_ranks_over_one_of_processor_time",
        median(ways[2].processor) / median(ways[1].processor), "%.3f", "");
  report_ratio("speed_up_of_two_ranks", ways[1], ways[2], ">= 1.72");
  if (ways.size() > 3) {
    report_ratio("one_rank_over_pytorch", ways[1], ways[3], "<= 1.0");
  }
}

void check(const Scratch& scratch) {
  const std::string command = "PIPER_CACHE='" + scratch.path("cache") +
                              "' '" PIPER_PROGRAM "' check '" PIPER_SOURCE_DIR
                              "/examples/quickstart.toml' >/dev/null";
  const auto once = [&] {
    const double start = now();
    output_of(command);
    return now() - start;
  };
  print("check_first_seconds", once(), "%.3f", "<= 3");
  std::vector<double> cached;
  for (int i = 0; i < 7; ++i) {
    cached.push_back(once());
  }
  print("check_cached_seconds", median(cached), "%.3f", "<= 0.3");
}

void quickstart() {
  const std::string text =
      output_of("cd '" PIPER_SOURCE_DIR "' && '" PIPER_PROGRAM "' train examples/quickstart.toml");
  const auto value = [&](const std::string& key) {
    const std::size_t at = text.rfind(' ' + key + '=');
    return at == std::string::npos ? 0 : std::atof(text.c_str() + at + key.size() + 2);
  };
  print("quickstart_seconds", value("seconds"), "%.1f", "<= 180");
  print("quickstart_held_out_loss", value("held_out_loss"), "%.4f", "< 2.5");
}

Options parse(int argc, char** argv) {
  Options options;
  CLI::App app("Training and starting, against LibTorch and PyTorch");
  app.add_option("--rounds", options.rounds, "rounds")->check(CLI::PositiveNumber);
  app.add_option("--steps", options.steps, "steps a round")->check(CLI::PositiveNumber);
  app.add_flag("!--no-quickstart", options.quickstart, "leave the quick start out");
  app.add_option("--python", options.python, "a Python with PyTorch");
  bench::parse(app, argc, argv);
  return options;
}

}  // namespace
}  // namespace piper

int main(int argc, char** argv) {
  const piper::Options options = piper::parse(argc, argv);
  const piper::bench::Scratch scratch;
  piper::check(scratch);
  piper::training(options, scratch);
  if (options.quickstart) {
    piper::quickstart();
  }
  return 0;
}

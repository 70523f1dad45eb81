// What running a pipeline costs beside what its schedule says: computations that sleep, so that
// eight ranks fit on two cores, and everything else as it is.
//
//   piper_bench_pipelines [--steps N] [--ranks R]
//
// A forward, a backward for inputs and one for weights take 5 ms a rank and micro-batch. Prints
// `bench pipelines METRIC = VALUE (target TARGET)`, for each schedule, ranks R and micro-batches M:
//
//   over_simulated  step / makespan simulated with the durations of the same step's tasks
//   over_ideal      step / makespan simulated with 5 ms and nothing else
//   bubble_points   how far the bubble of the run is from that of the ideal, in hundredths
//   gain_kept       of ZBV's gain over 1F1B, what is left in the run
//
// Each is the median of the steps, with the best beside it. Nothing here passes or fails. Where it
// is allowed, all threads run at FIFO priority, as those of the PyTorch figures did, so that other
// programs do not delay a thread that has slept enough.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <numeric>
#include <string>

#include "bench/job.h"
#include "core/simulate/analysis.h"
#include "core/simulate/emulated.h"
#include "core/simulate/measured.h"

namespace piper {
namespace {

using bench::least;
using bench::median;
using bench::must;
using bench::Scratch;

struct Options {
  int steps = 5;  // after one that is not counted
  int ranks = 0;  // 0: 4 and 8
};

struct Schedule {
  std::string name, plugin;
};
const Schedule kSchedules[] = {
    {"gpipe", "interleaved1f1b"},       {"1f1b", "interleaved1f1b"},
    {"interleaved", "interleaved1f1b"}, {"zb1p", "zerobubble"},
    {"interleaved_zb", "zerobubble"},   {"zbv", "zerobubble"},
    {"dualpipev", "dualpipe"},          {"dualpipe", "dualpipe"},
};

Job job_of(const Scratch& scratch, const Schedule& schedule, int ranks, int microbatches) {
  return bench::make_job(
      scratch,
      "[model]\nname = \"qwen3\"\nlayers = 16\ndim = 16\nheads = 2\nkv_heads = 2\nhead_dim = 8\n"
      "ffn = 16\nvocab = 32\ntied = false\n[mesh]\npp = " +
          std::to_string(ranks) +
          "\n[training]\ndataset = \"jsonl\"\ndataset_path = [\"none\"]\nseq_len = 8\n"
          "global_batch_size = " +
          std::to_string(microbatches) + "\nmicrobatches = " + std::to_string(microbatches) +
          "\nsteps = 1000\n[optimizer]\nname = \"sgd\"\nlr = 0.1\n[emulate]\nforward_ms = 5\n"
          "backward_input_ms = 5\nbackward_weight_ms = 5\n[[strategy]]\nplugin = \"" +
          schedule.plugin + "\"\nschedule = \"" + schedule.name + "\"\n");
}

struct Measured {
  double ideal = 0;                                            // seconds
  std::vector<double> seconds, over_simulated, bubble_points;  // by step
};

Measured measure(const Job& job, int steps) {
  const Plan& plan = job.plans.train;
  const Simulation ideal = must(simulate(plan, emulated_durations(plan, job.config.emulate)));
  const double bubble = analyse(plan, job.model, ideal).bubble;
  Measured out;
  out.ideal = static_cast<double>(ideal.makespan) * 1e-9;

  bench::Run run(job, bench::random_batch(job));
  for (int step = 0; step <= steps; ++step) {
    const StepResult result = run.step(/*record=*/true);
    if (step == 0) {
      continue;
    }
    const Durations durations = durations_of(without_waits(plan, result.times));
    const double simulated = static_cast<double>(must(simulate(plan, durations)).makespan) * 1e-9;
    out.seconds.push_back(result.seconds);
    out.over_simulated.push_back(result.seconds / simulated);
    const std::int64_t busy =
        std::accumulate(result.busy_ns.begin(), result.busy_ns.end(), std::int64_t{0});
    const double measured = 1 - 1e-9 * static_cast<double>(busy) / (plan.world * result.seconds);
    out.bubble_points.push_back(std::abs(measured - bubble) * 100);
  }
  return out;
}

void print(const std::string& metric, double middle, double best, const std::string& target) {
  bench::print("pipelines", metric, middle, "%.3f", target);
  bench::print("pipelines", metric + "_best", best, "%.3f", target);
}

void one_size(const Scratch& scratch, int ranks, int microbatches, int steps) {
  std::map<std::string, Measured> all;
  for (const Schedule& schedule : kSchedules) {
    const Measured& found = all[schedule.name] =
        measure(job_of(scratch, schedule, ranks, microbatches), steps);
    const std::string name =
        schedule.name + "_r" + std::to_string(ranks) + "_m" + std::to_string(microbatches) + "_";
    bench::print("pipelines", name + "step_ms", median(found.seconds) * 1e3, "%.2f");
    print(name + "over_simulated", median(found.over_simulated), least(found.over_simulated),
          "<= 1.02");
    print(name + "over_ideal", median(found.seconds) / found.ideal,
          least(found.seconds) / found.ideal, "<= 1.04");
    print(name + "bubble_points", median(found.bubble_points), least(found.bubble_points), "<= 2");
  }
  const auto gain = [](double faster, double slower) { return 1 - faster / slower; };
  const Measured &zbv = all["zbv"], &plain = all["1f1b"];
  const double ideal = gain(zbv.ideal, plain.ideal);
  print("gain_kept_r" + std::to_string(ranks) + "_m" + std::to_string(microbatches),
        gain(median(zbv.seconds), median(plain.seconds)) / ideal,
        gain(least(zbv.seconds), least(plain.seconds)) / ideal, ">= 0.85");
}

Options parse(int argc, char** argv) {
  Options options;
  CLI::App app("What running a pipeline costs beside its schedule");
  app.add_option("--steps", options.steps, "steps of a job")->check(CLI::PositiveNumber);
  app.add_option("--ranks", options.ranks, "one size only")->check(CLI::IsMember({4, 8}));
  bench::parse(app, argc, argv);
  return options;
}

}  // namespace
}  // namespace piper

int main(int argc, char** argv) {
  const piper::Options options = piper::parse(argc, argv);
  piper::bench::run_ahead_while_sleeping();
  const piper::bench::Scratch scratch;
  for (const int ranks : {4, 8}) {
    if (options.ranks == 0 || options.ranks == ranks) {
      for (const int microbatches : {2 * ranks, 4 * ranks}) {
        piper::one_size(scratch, ranks, microbatches, options.steps);
      }
    }
  }
  return 0;
}

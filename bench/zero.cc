// What ZeRO saves and costs.
//
//   piper_bench_zero [--steps N]
//
//   fits_*   pipeline x ZeRO in one capacity: rows of the largest micro-batch that fits, with the
//            policies "chain" and with "step", as the usual frameworks have under a pipeline. The
//            capacity is what "step" needs for 4 rows in both stages. The largest are run for a
//            step. And planned only: a dense model with as many parameters as the original's of 1B,
//            in the set-up of its sweep, on ranks of 40 GiB. Both also with recomputation.
//   bytes_*  bytes a parameter at the peak, planned and measured, beside those of docs/zero.md; few
//            tokens, small buckets.
//   step_*   milliseconds of a step with emulated computations and links, simulated and measured.
//
// Prints `bench zero METRIC = VALUE (target TARGET)`. Nothing here passes or fails.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "bench/job.h"
#include "core/pipeline.h"
#include "core/plugin/host.h"
#include "core/simulate/emulated.h"
#include "core/verify/rank_peaks.h"

namespace piper {
namespace {

using bench::median;
using bench::must;

void print(const std::string& metric, double value, const char* format,
           const std::string& target = "") {
  bench::print("zero", metric, value, format, target);
}

std::string number(std::int64_t value) {
  return std::to_string(value);
}

std::string zero(int stage, const std::string& more = "") {
  return "[[strategy]]\nplugin = \"zero\"\nstage = " + number(stage) + "\n" + more;
}

const std::string kOneForwardOneBackward =
    "[[strategy]]\nplugin = \"interleaved1f1b\"\nschedule = \"1f1b\"\n";

// The most that a rank can need while it trains.
std::int64_t most_bytes(const Job& job) {
  return most_bytes(job.plans.train, job.model);
}

// ---- The largest micro-batch ----

// A job whose micro-batches have as many rows as asked.
class Sized {
 public:
  Sized(const bench::Scratch& scratch, const std::string& text, std::int64_t parts)
      : job_(bench::make_job(scratch, text)), parts_(parts) {}

  Job with(std::int64_t rows) const {
    Job job = job_;
    job.config.training.global_batch_size = rows * parts_;
    const SearchPath plugins = must(plugin_search_path({PIPER_PLUGIN_DIR}));
    job.plans = must(plan(job.config, job.model, must(propose(job.config, job.model, plugins))));
    return job;
  }

  // Memory grows with the rows. 0: not even one fits.
  std::int64_t largest(std::int64_t capacity) const {
    std::int64_t low = 0, high = 1;
    while (most_bytes(with(high)) <= capacity) {
      low = std::exchange(high, 2 * high);
    }
    while (high - low > 1) {
      const std::int64_t middle = (low + high) / 2;
      (most_bytes(with(middle)) <= capacity ? low : high) = middle;
    }
    return low;
  }

 private:
  Job job_;
  std::int64_t parts_;  // micro-batches x data-parallel ranks
};

struct Policy {
  std::string name, options;
};
const Policy kPolicies[] = {
    {"chain", ""},
    {"step", "reduce = \"step\"\nkeep_gathered = \"step\"\n"},
};

void run_once(const std::string& name, const Job& job) {
  Batch batch = bench::random_batch(job);
  bench::Run run(job, std::move(batch));
  run.step();  // makes the optimizer's state at its end
  const StepResult result = run.step();
  const auto most = *std::max_element(result.peak_bytes.begin(), result.peak_bytes.end());
  print(name + "_planned_mib", static_cast<double>(most_bytes(job)) / 1048576, "%.1f");
  print(name + "_measured_mib", static_cast<double>(most) / 1048576, "%.1f", "<= planned");
}

// `capacity` 0: what "step" needs for 4 rows in both stages. Prints the larger over the smaller.
void compare_policies(const std::string& name, const std::string& text, std::int64_t parts,
                      const std::string& buckets, std::int64_t capacity, bool runs) {
  const bench::Scratch scratch;
  const auto job_of = [&](int stage, const Policy& policy) {
    return Sized(scratch, text + zero(stage, buckets + policy.options), parts);
  };
  if (capacity == 0) {
    capacity = std::max(most_bytes(job_of(2, kPolicies[1]).with(4)),
                        most_bytes(job_of(3, kPolicies[1]).with(4)));
  }
  print(name + "_capacity_mib", static_cast<double>(capacity) / 1048576, "%.1f");
  for (const int stage : {2, 3}) {
    std::int64_t rows[2] = {};
    for (const int which : {0, 1}) {
      const Sized sized = job_of(stage, kPolicies[which]);
      rows[which] = sized.largest(capacity);
      const std::string metric = name + "_zero" + number(stage) + '_' + kPolicies[which].name;
      print(metric + "_rows", static_cast<double>(rows[which]), "%.0f");
      if (runs && rows[which] > 0) {
        run_once(metric, sized.with(rows[which]));
      }
    }
    print(name + "_zero" + number(stage) + "_chain_over_step",
          static_cast<double>(rows[0]) / static_cast<double>(std::max<std::int64_t>(rows[1], 1)),
          "%.2f", stage == 2 ? "the original's model: 8" : "the original's model: 3.3");
  }
}

// The bench's own model, and a dense one with as many parameters as the original's of 1B in the
// set-up of its sweep; with the activations that a backward needs kept, and recomputed.
void fits() {
  const std::string small =
      "[model]\nname = \"qwen3\"\nlayers = 8\ndim = 256\nheads = 4\nkv_heads = 4\n"
      "head_dim = 64\nffn = 688\nvocab = 256\ntied = false\n[mesh]\npp = 4\ndp = 2\n"
      "[training]\ndataset = \"jsonl\"\ndataset_path = [\"none\"]\nseq_len = 16\n"
      "global_batch_size = 16\nmicrobatches = 8\nsteps = 1000\n"
      "[optimizer]\nname = \"adamw\"\nlr = 0.001\n";
  const std::string original =
      "[model]\nname = \"qwen3\"\nlayers = 16\ndim = 1024\nheads = 16\nkv_heads = 8\n"
      "head_dim = 64\nffn = 14336\nvocab = 151936\ntied = false\n[mesh]\npp = 8\n"
      "dp = 2\n[training]\ndataset = \"jsonl\"\ndataset_path = [\"none\"]\n"
      "seq_len = 512\nglobal_batch_size = 32\nmicrobatches = 16\nsteps = 1000\n"
      "dtype = \"bfloat16\"\n[optimizer]\nname = \"adamw\"\nlr = 0.001\n";
  for (const std::string mode : {"none", "full"}) {
    const std::string more = "[activation_checkpoint]\nmode = \"" + mode + "\"\n";
    const std::string suffix = mode == "none" ? "" : "_recomputed";
    compare_policies("fits_pp4_dp2" + suffix, small + more + kOneForwardOneBackward, 16,
                     "bucket_bytes = 1\n", 0, /*runs=*/true);
    compare_policies("fits_1b_pp8_dp2" + suffix, original + more + kOneForwardOneBackward, 32, "",
                     std::int64_t{40} << 30, /*runs=*/false);
  }
}

// ---- Bytes a parameter ----

void bytes() {
  constexpr double kRanks = 2;
  const bench::Scratch scratch;
  for (const std::string dtype : {"float32", "bfloat16"}) {
    for (const int stage : {0, 1, 2, 3}) {
      const Job job = bench::make_job(
          scratch,
          "[model]\nname = \"qwen3\"\nlayers = 32\ndim = 128\nheads = 2\nkv_heads = 2\n"
          "head_dim = 64\nffn = 344\nvocab = 256\ntied = false\n[mesh]\ndp = 2\n"
          "[training]\ndataset = \"jsonl\"\ndataset_path = [\"none\"]\nseq_len = 8\n"
          "global_batch_size = 4\nmicrobatches = 2\nsteps = 1000\ndtype = \"" +
              dtype + "\"\n[optimizer]\nname = \"adamw\"\nlr = 0.001\n" +
              zero(stage, "bucket_bytes = 1\n"));
      double parameters = 0;
      for (const Parameter& parameter : job.model.parameters) {
        parameters += static_cast<double>(parameter.bytes() / size_of(parameter.dtype));
      }
      const bool wide = dtype == "float32";
      const double whole[] = {wide ? 16.0 : 18.0, wide ? 8.0 : 6.0, wide ? 4.0 : 2.0, 0};
      const double parts[] = {0, wide ? 12.0 : 16.0, wide ? 12.0 : 16.0, wide ? 16.0 : 18.0};
      bench::Run run(job, bench::random_batch(job));
      run.step();
      const StepResult result = run.step();
      const std::string name = "bytes_" + dtype + "_zero" + number(stage);
      print(name + "_kept", whole[stage] + parts[stage] / kRanks, "%.2f");
      print(name + "_planned", static_cast<double>(most_bytes(job)) / parameters, "%.2f");
      print(name + "_measured", static_cast<double>(result.peak_bytes[0]) / parameters, "%.2f",
            "<= planned");
    }
  }
}

// ---- Time ----

double step_time(const std::string& name, const std::string& strategy, int steps) {
  const bench::Scratch scratch;
  Job job = bench::make_job(
      scratch,
      "[model]\nname = \"qwen3\"\nlayers = 16\ndim = 64\nheads = 2\nkv_heads = 2\nhead_dim = 32\n"
      "ffn = 172\nvocab = 256\ntied = false\n[mesh]\npp = 2\ndp = 2\n[training]\n"
      "dataset = \"jsonl\"\ndataset_path = [\"none\"]\nseq_len = 8\nglobal_batch_size = 16\n"
      "microbatches = 8\nsteps = 1000\n[optimizer]\nname = \"sgd\"\nlr = 0.1\n[emulate]\n"
      "forward_ms = 10\nbackward_input_ms = 10\nbackward_weight_ms = 10\nlink_latency_us = 100\n"
      "link_gbps = 2\n[[strategy]]\nplugin = \"interleaved1f1b\"\nschedule = \"interleaved\"\n"
      "stages_per_rank = 2\n" +
          strategy);
  const Plan& plan = job.plans.train;
  const double simulated =
      static_cast<double>(
          must(simulate(plan, emulated_durations(plan, job.config.emulate))).makespan) *
      1e-6;
  Batch batch = bench::random_batch(job);
  bench::Run run(std::move(job), std::move(batch));
  run.step();
  std::vector<double> milliseconds;
  for (int step = 0; step < steps; ++step) {
    milliseconds.push_back(run.step().seconds * 1e3);
  }
  print(name + "_simulated_ms", simulated, "%.2f");
  print(name + "_ms", median(milliseconds), "%.2f");
  return median(milliseconds);
}

void times(int steps) {
  const double plain = step_time("step_zero0", zero(0, "bucket_bytes = 0\n"), steps);
  for (const int stage : {1, 2, 3}) {
    const std::string name = "step_zero" + number(stage);
    print(name + "_over_zero0", step_time(name, zero(stage, "bucket_bytes = 0\n"), steps) / plain,
          "%.3f");
  }
  for (const int prefetch : {0, 1, 2}) {
    const std::string name = "step_zero3_prefetch" + number(prefetch);
    print(
        name + "_over_zero0",
        step_time(name, zero(3, "bucket_bytes = 0\nprefetch = " + number(prefetch) + "\n"), steps) /
            plain,
        "%.3f");
  }
  print("step_zero3_step_over_zero0",
        step_time("step_zero3_step", zero(3, "bucket_bytes = 0\n" + kPolicies[1].options), steps) /
            plain,
        "%.3f");
}

}  // namespace
}  // namespace piper

int main(int argc, char** argv) {
  const int steps = argc > 2 && std::string(argv[1]) == "--steps" ? std::atoi(argv[2]) : 5;
  piper::fits();
  piper::bytes();
  piper::bench::run_ahead_while_sleeping();
  piper::times(std::max(steps, 1));
  return 0;
}

// What overlap groups hide: communication that idle ranks of DualPipeV wait for, in a run of the
// plan and in a run of the same plan whose groups are blocks (their results leave only at their
// end, and they start only when all that their members need is there).
//
//   piper_bench_pipelines_overlap [STEPS]
//
// Four ranks, 16 micro-batches, forwards of 2.5 ms a stage, messages of 1 ms. Prints `bench
// pipelines_overlap METRIC = VALUE (target TARGET)`: milliseconds, summed over the ranks, as
// simulated and as measured (the median of the steps). Nothing here passes or fails.
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "bench/job.h"
#include "core/simulate/analysis.h"
#include "core/simulate/emulated.h"
#include "core/simulate/measured.h"
#include "tests/support/atomic_pairs.h"

namespace piper {
namespace {

using bench::median;

constexpr double kMillisecond = 1e-6;  // nanoseconds

Job job_of(const bench::Scratch& scratch) {
  return bench::make_job(
      scratch,
      "[model]\nname = \"qwen3\"\nlayers = 8\ndim = 16\nheads = 2\nkv_heads = 2\nhead_dim = 8\n"
      "ffn = 16\nvocab = 32\ntied = false\n[mesh]\npp = 4\n[training]\ndataset = \"jsonl\"\n"
      "dataset_path = [\"none\"]\nseq_len = 8\nglobal_batch_size = 16\nmicrobatches = 16\n"
      "steps = 1000\n[optimizer]\nname = \"sgd\"\nlr = 0.1\n[emulate]\nforward_ms = 5\n"
      "backward_input_ms = 5\nbackward_weight_ms = 5\nlink_latency_us = 1000\n"
      "[[strategy]]\nplugin = \"dualpipe\"\nschedule = \"dualpipev\"\n");
}

double exposed_ms(const Job& job, const Simulation& run) {
  double sum = 0;
  for (const ProgramReport& program : analyse(job.plans.train, job.model, run).programs) {
    sum += static_cast<double>(program.exposed) * kMillisecond;
  }
  return sum;
}

struct Exposed {
  double simulated = 0, measured = 0, step_ms = 0;
};

Exposed measure(Job job, const std::string& name, int steps) {
  const Plan& plan = job.plans.train;
  Exposed found;
  found.simulated =
      exposed_ms(job, bench::must(simulate(plan, emulated_durations(plan, job.config.emulate))));
  Batch batch = bench::random_batch(job);
  bench::Run run(std::move(job), std::move(batch));
  run.step();
  std::vector<double> exposed, seconds;
  for (int step = 0; step < steps; ++step) {
    const StepResult result = run.step(/*record=*/true);
    seconds.push_back(result.seconds);
    exposed.push_back(
        exposed_ms(run.job(), observed(run.plan(), without_waits(run.plan(), result.times))));
  }
  found.measured = median(exposed);
  found.step_ms = median(seconds) * 1e3;
  bench::print("pipelines_overlap", name + "_step_ms", found.step_ms, "%.1f");
  bench::print("pipelines_overlap", name + "_exposed_ms_simulated", found.simulated, "%.1f");
  bench::print("pipelines_overlap", name + "_exposed_ms_measured", found.measured, "%.1f");
  return found;
}

void run(int steps) {
  const bench::Scratch scratch;
  Job job = job_of(scratch);
  Job blocks = job;
  blocks.plans.train = test::with_atomic_pairs(std::move(blocks.plans.train));
  const Exposed overlapped = measure(std::move(job), "overlapped", steps);
  const Exposed apart = measure(std::move(blocks), "blocks", steps);
  bench::print("pipelines_overlap", "exposed_over_blocks_simulated",
               overlapped.simulated / apart.simulated, "%.3f", "< 1");
  bench::print("pipelines_overlap", "exposed_over_blocks_measured",
               overlapped.measured / apart.measured, "%.3f", "< 1");
}

}  // namespace
}  // namespace piper

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 10;
  piper::run(steps > 0 ? steps : 10);
  return 0;
}

// A real model on two ranks: each schedule's step beside the time that the simulator gives it.
//
//   piper_bench_pipelines_model [--rounds N] [--python PYTHON]
//
// What a computation takes is measured where there is no pipeline: a rank that runs every stage
// itself, while a second one does the same work on the other core. With these durations, and with
// messages and collectives that take nothing, the plan of the two ranks is simulated. Prints
// `bench pipelines_model METRIC = VALUE (target TARGET)`, for each schedule:
//
//   step_ms         the median step
//   over_simulated  step / simulated makespan: the median over the rounds. Pipeline and twins take
//                   turns, and a step is set against the mean of the turns before and after it, so
//                   that a machine that changes its pace hits both; and the fastest step / the
//                   makespan by the fastest step of the twins
//   over_own_durations  step / makespan simulated with the durations of the same step: what waiting
//                       costs, without what two runs differ in
//
// With PYTHON, which must have PyTorch, torch.distributed.pipelining takes part (pipelines.py).
// Nothing here passes or fails.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <barrier>
#include <limits>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/job.h"
#include "core/simulate/measured.h"

namespace piper {
namespace {

using bench::least;
using bench::median;
using bench::Scratch;

constexpr double kNanosecond = 1e-9;

struct Options {
  int rounds = 7;
  std::string python;
};

// Every stage on one rank: two or four of them, whole or split backwards.
enum Alone { kTwoWhole, kFourWhole, kTwoSplit, kFourSplit };
const std::string kAlone[] = {
    "plugin = \"interleaved1f1b\"\nschedule = \"interleaved\"\nstages_per_rank = 2\n",
    "plugin = \"interleaved1f1b\"\nschedule = \"interleaved\"\nstages_per_rank = 4\n",
    "plugin = \"zerobubble\"\nschedule = \"interleaved_zb\"\nstages_per_rank = 2\n",
    "plugin = \"zerobubble\"\nschedule = \"interleaved_zb\"\nstages_per_rank = 4\n",
};

struct Schedule {
  std::string name, plugin;
  std::vector<Alone> alone;  // where its computations are measured
  bool pytorch;              // has it
};
const Schedule kSchedules[] = {
    {"gpipe", "interleaved1f1b", {kTwoWhole}, true},
    {"1f1b", "interleaved1f1b", {kTwoWhole}, true},
    {"interleaved", "interleaved1f1b", {kFourWhole}, true},
    {"zb1p", "zerobubble", {kTwoSplit}, false},
    {"interleaved_zb", "zerobubble", {kFourSplit}, true},
    {"zbv", "zerobubble", {kFourSplit}, true},
    {"dualpipev", "dualpipe", {kFourWhole, kFourSplit}, true},
    {"dualpipe", "dualpipe", {kTwoWhole, kTwoSplit}, false},
};

// What a task works on, whatever the plan: the regions of a chunk, the parameters of a bucket.
using Work = std::pair<Op, std::vector<std::uint32_t>>;

Work work_of(const Plan& plan, const Task& task) {
  Work work{task.op, {}};
  if (valid(task.chunk)) {
    for (const RegionId id : plan.chunks[index(task.chunk)].regions) {
      work.second.push_back(index(id));
    }
  } else if (task.op == Op::update) {
    for (const ParameterId id : plan.buckets[index(task.bucket)].parameters) {
      work.second.push_back(index(id));
    }
  }
  return work;
}

// Nanoseconds.
using Cost = std::map<Work, double>;

// One step of a rank that runs the model alone, in the company of its twin on the other core: the
// median of each kind of work, and how long the slower of both took.
struct Twins {
  Cost durations;
  double seconds = std::numeric_limits<double>::infinity();
};

Twins measure_twins(std::array<bench::Run, 2>& twins) {
  std::array<StepResult, 2> results;
  std::barrier start(2);
  const auto one = [&](std::size_t i) {
    start.arrive_and_wait();
    results[i] = twins[i].step(/*record=*/true);
  };
  std::thread other(one, 1);
  one(0);
  other.join();

  const Plan& plan = twins[0].plan();
  const std::vector<Task>& tasks = plan.programs.front().tasks;
  std::map<Work, std::vector<double>> samples;
  Twins out{{}, 0};
  for (const StepResult& result : results) {
    out.seconds = std::max(out.seconds, result.seconds);
    for (std::size_t t = 0; t < tasks.size(); ++t) {
      const TimeSpan& span = result.times[0][t];
      samples[work_of(plan, tasks[t])].push_back(static_cast<double>(span.end - span.begin));
    }
  }
  for (const auto& [work, values] : samples) {
    out.durations[work] = median(values);
  }
  return out;
}

double makespan(const Plan& plan, const Durations& durations) {
  return static_cast<double>(bench::must(simulate(plan, durations)).makespan) * kNanosecond;
}

// A scalar's time grows with the parameters that the rank holds; messages and collectives between
// ranks are in no sample and take nothing.
double simulated_seconds(const Plan& plan, const Cost& durations) {
  const auto elements = [&](const std::vector<BucketId>& buckets) {
    double sum = 0;
    for (const BucketId id : buckets) {
      sum += static_cast<double>(plan.buckets[index(id)].elements);
    }
    return sum;
  };
  double all = 0;
  for (const Bucket& bucket : plan.buckets) {
    all += static_cast<double>(bucket.elements);
  }
  Durations result;
  for (const Program& program : plan.programs) {
    result.emplace_back();
    for (const Task& task : program.tasks) {
      const auto found = durations.find(work_of(plan, task));
      const double share = task.op == Op::grad_norm ? elements(program.buckets) / all : 1;
      result.back().push_back(
          found == durations.end() ? 0 : static_cast<std::uint64_t>(found->second * share));
    }
  }
  return makespan(plan, result);
}

struct Way {
  bench::Run run;
  std::vector<double> seconds = {}, over_simulated = {}, over_own = {};
  double fastest_simulated = 0;
};

class Bench {
 public:
  explicit Bench(Options options) : options_(std::move(options)) {
    for (const std::string& strategy : kAlone) {
      alone_.push_back({run_of(1, strategy), run_of(1, strategy)});
      measure_twins(alone_.back());  // the first step allocates
    }
  }

  void run(const Schedule& schedule) {
    Way way{
        run_of(2, "plugin = \"" + schedule.plugin + "\"\nschedule = \"" + schedule.name + "\"\n")};
    way.run.step();
    measure(schedule, way);
    print(schedule, way);
  }

 private:
  void measure(const Schedule& schedule, Way& way) {
    const Plan& plan = way.run.plan();
    Twins fastest;
    const auto turn = [&] {
      Twins twins = measure_alone(schedule);
      if (twins.seconds < fastest.seconds) {
        fastest = twins;
      }
      return simulated_seconds(plan, twins.durations);
    };
    double before = turn();
    for (int round = 0; round < options_.rounds; ++round) {
      const StepResult result = way.run.step(/*record=*/true);
      const double after = turn();
      way.seconds.push_back(result.seconds);
      way.over_simulated.push_back(2 * result.seconds / (before + after));
      const Durations own = durations_of(without_waits(plan, result.times));
      way.over_own.push_back(result.seconds / makespan(plan, own));
      before = after;
    }
    way.fastest_simulated = simulated_seconds(plan, fastest.durations);
  }

  // All that the schedule computes, each kind of work as its twins take for it.
  Twins measure_alone(const Schedule& schedule) {
    Twins all{{}, 0};
    for (const Alone alone : schedule.alone) {
      Twins twins = measure_twins(alone_[alone]);
      all.durations.merge(twins.durations);
      all.seconds += twins.seconds;
    }
    return all;
  }

  void print(const Schedule& schedule, const Way& way) const {
    const auto line = [&](const std::string& metric, double value, const char* format,
                          const std::string& target = "") {
      bench::print("pipelines_model", schedule.name + '_' + metric, value, format, target);
    };
    line("step_ms", median(way.seconds) * 1e3, "%.1f");
    line("over_simulated", median(way.over_simulated), "%.3f", "<= 1.03");
    line("over_simulated_of_fastest", least(way.seconds) / way.fastest_simulated, "%.3f",
         "<= 1.03");
    line("over_own_durations", median(way.over_own), "%.3f");
    if (!options_.python.empty() && schedule.pytorch) {
      const double theirs = median(pytorch(schedule.name));
      line("pytorch_step_ms", theirs * 1e3, "%.1f");
      line("over_pytorch", median(way.seconds) / theirs, "%.3f");
    }
  }

  bench::Run run_of(int pp, const std::string& strategy) const {
    Job job = bench::make_job(scratch_, bench::language_model(pp) + "[[strategy]]\n" + strategy);
    Batch batch = bench::random_batch(job);
    return {std::move(job), std::move(batch)};
  }

  std::vector<double> pytorch(const std::string& schedule) const {
    const std::string script = std::string(PIPER_SOURCE_DIR) + "/bench/pipelines.py";
    return bench::numbers(bench::output_of("'" + options_.python + "' '" + script + "' " +
                                           schedule + " " + std::to_string(options_.rounds)));
  }

  const Options options_;
  const Scratch scratch_;
  std::vector<std::array<bench::Run, 2>> alone_;  // by Alone
};

Options parse(int argc, char** argv) {
  Options options;
  CLI::App app("A step of a real model, against the makespan of its computations alone");
  app.add_option("--rounds", options.rounds, "rounds")->check(CLI::PositiveNumber);
  app.add_option("--python", options.python, "a Python with PyTorch")
      ->envname("PIPER_BENCH_PYTHON");
  bench::parse(app, argc, argv);
  return options;
}

}  // namespace
}  // namespace piper

int main(int argc, char** argv) {
  const piper::Options options = piper::parse(argc, argv);
  piper::Bench bench(options);
  for (const piper::Schedule& schedule : piper::kSchedules) {
    bench.run(schedule);
  }
  return 0;
}

// A real model on two ranks: each schedule's step beside the time that the simulator gives it.
//
//   piper_bench_pipelines_model [--rounds N] [--steps N] [--python PYTHON]
//
// What a computation takes is measured where there is no pipeline: a rank that runs every stage
// itself, while a second one does the same work on the other core. With these durations, and with
// messages and collectives that take nothing, the plan of the two ranks is simulated. Prints
// `bench pipelines_model METRIC = VALUE (target TARGET)`, for each schedule:
//
//   step_ms         the median step
//   over_simulated  step / simulated makespan: the median over the rounds, each with durations of
//                   its own; and the best step over the makespan by the medians of all
//
// With PYTHON, which must have PyTorch, torch.distributed.pipelining takes part (pipelines.py).
// Nothing here passes or fails.
#include <algorithm>
#include <barrier>
#include <cstdlib>
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
  int rounds = 5;
  int steps = 2;  // a round
  std::string python;
};

struct Schedule {
  std::string name, plugin;
  bool pytorch;  // has it
};
const Schedule kSchedules[] = {
    {"gpipe", "interleaved1f1b", true},       {"1f1b", "interleaved1f1b", true},
    {"interleaved", "interleaved1f1b", true}, {"zb1p", "zerobubble", false},
    {"interleaved_zb", "zerobubble", true},   {"zbv", "zerobubble", true},
    {"dualpipev", "dualpipe", true},          {"dualpipe", "dualpipe", false},
};

// Every stage on one rank, whole and split backwards, with as many stages as the schedules have.
const std::string kAlone[] = {
    "plugin = \"interleaved1f1b\"\nschedule = \"interleaved\"\nstages_per_rank = 2\n",
    "plugin = \"interleaved1f1b\"\nschedule = \"interleaved\"\nstages_per_rank = 4\n",
    "plugin = \"zerobubble\"\nschedule = \"interleaved_zb\"\nstages_per_rank = 2\n",
    "plugin = \"zerobubble\"\nschedule = \"interleaved_zb\"\nstages_per_rank = 4\n",
};

Job job_of(const Scratch& scratch, int pp, const std::string& strategy) {
  return bench::make_job(scratch, bench::language_model(pp) + "[[strategy]]\n" + strategy);
}

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
using Samples = std::map<Work, std::vector<double>>;

// The step of a rank that runs the model alone, in the company of its twin on the other core.
void measure_twins(std::vector<bench::Run>& twins, int steps, Samples& samples) {
  std::barrier start(static_cast<std::ptrdiff_t>(twins.size()));
  std::vector<std::vector<StepResult>> results(twins.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < twins.size(); ++i) {
    threads.emplace_back([&, i] {
      for (int step = 0; step < steps; ++step) {
        start.arrive_and_wait();
        results[i].push_back(twins[i].step(/*record=*/true));
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  const Plan& plan = twins.front().plan();
  const std::vector<Task>& tasks = plan.programs.front().tasks;
  for (const std::vector<StepResult>& steps_of_twin : results) {
    for (const StepResult& result : steps_of_twin) {
      for (std::size_t t = 0; t < tasks.size(); ++t) {
        const Simulation::Span& span = result.times[0][t];
        samples[work_of(plan, tasks[t])].push_back(static_cast<double>(span.end - span.begin));
      }
    }
  }
}

// A scalar's time grows with the parameters that the rank holds; messages and collectives between
// ranks are in no sample and take nothing.
double simulated_seconds(const Plan& plan, const std::map<Work, double>& durations) {
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
  return static_cast<double>(bench::must(simulate(plan, result)).makespan) * kNanosecond;
}

std::map<Work, double> medians(const Samples& samples) {
  std::map<Work, double> result;
  for (const auto& [work, values] : samples) {
    result[work] = median(values);
  }
  return result;
}

struct Way {
  explicit Way(bench::Run made) : run(std::move(made)) {}

  bench::Run run;
  std::vector<double> seconds = {}, over_simulated = {}, pytorch = {};
};

void measure(const Options& options, const Scratch& scratch) {
  std::vector<std::vector<bench::Run>> alone;
  for (const std::string& strategy : kAlone) {
    std::vector<bench::Run>& twins = alone.emplace_back();
    for (int twin = 0; twin < 2; ++twin) {
      Job job = job_of(scratch, 1, strategy);
      Batch batch = bench::random_batch(job);
      twins.emplace_back(std::move(job), std::move(batch));
    }
  }
  std::vector<Way> ways;
  for (const Schedule& schedule : kSchedules) {
    Job job = job_of(
        scratch, 2, "plugin = \"" + schedule.plugin + "\"\nschedule = \"" + schedule.name + "\"\n");
    Batch batch = bench::random_batch(job);
    ways.emplace_back(bench::Run(std::move(job), std::move(batch)));
    ways.back().run.step();  // the first step allocates
  }
  Samples unused;
  for (std::vector<bench::Run>& twins : alone) {
    measure_twins(twins, 1, unused);
  }

  Samples all;
  for (int round = 0; round < options.rounds; ++round) {
    Samples samples;
    for (std::vector<bench::Run>& twins : alone) {
      measure_twins(twins, options.steps, samples);
    }
    const std::map<Work, double> durations = medians(samples);
    for (auto& [work, values] : samples) {
      all[work].insert(all[work].end(), values.begin(), values.end());
    }
    for (std::size_t i = 0; i < ways.size(); ++i) {
      Way& way = ways[i];
      const double simulated = simulated_seconds(way.run.plan(), durations);
      for (int step = 0; step < options.steps; ++step) {
        way.seconds.push_back(way.run.step().seconds);
        way.over_simulated.push_back(way.seconds.back() / simulated);
      }
      if (!options.python.empty() && kSchedules[i].pytorch) {
        const std::string script = std::string(PIPER_SOURCE_DIR) + "/bench/pipelines.py";
        const std::vector<double> seconds = bench::numbers(
            bench::output_of("'" + options.python + "' '" + script + "' " + kSchedules[i].name +
                             " " + std::to_string(options.steps)));
        way.pytorch.insert(way.pytorch.end(), seconds.begin(), seconds.end());
      }
    }
  }

  const std::map<Work, double> durations = medians(all);
  for (std::size_t i = 0; i < ways.size(); ++i) {
    const Way& way = ways[i];
    const auto print = [&](const std::string& metric, double value, const char* format,
                           const std::string& target = "") {
      bench::print("pipelines_model", kSchedules[i].name + '_' + metric, value, format, target);
    };
    print("step_ms", median(way.seconds) * 1e3, "%.1f");
    print("simulated_ms", simulated_seconds(way.run.plan(), durations) * 1e3, "%.1f");
    print("over_simulated", median(way.over_simulated), "%.3f", "<= 1.03");
    print("over_simulated_best", least(way.seconds) / simulated_seconds(way.run.plan(), durations),
          "%.3f", "<= 1.03");
    if (!way.pytorch.empty()) {
      print("pytorch_step_ms", median(way.pytorch) * 1e3, "%.1f");
      print("over_pytorch", median(way.seconds) / median(way.pytorch), "%.3f");
    }
  }
}

Options parse(int argc, char** argv) {
  Options options;
  if (const char* const python = std::getenv("PIPER_BENCH_PYTHON")) {
    options.python = python;
  }
  for (int i = 1; i < argc; i += 2) {
    const std::string flag = argv[i];
    const char* const value = i + 1 < argc ? argv[i + 1] : "";
    if (flag == "--rounds" && std::atoi(value) > 0) {
      options.rounds = std::atoi(value);
    } else if (flag == "--steps" && std::atoi(value) > 0) {
      options.steps = std::atoi(value);
    } else if (flag == "--python" && *value != '\0') {
      options.python = value;
    } else {
      std::fprintf(
          stderr,
          "usage: piper_bench_pipelines_model [--rounds N] [--steps N] [--python PYTHON]\n");
      std::exit(2);
    }
  }
  return options;
}

}  // namespace
}  // namespace piper

int main(int argc, char** argv) {
  const piper::Options options = piper::parse(argc, argv);
  const piper::bench::Scratch scratch;
  piper::measure(options, scratch);
  return 0;
}

// The planner's numbers: time and memory a node, whole commands, what an action of a plugin costs,
// and whether every run prints the same plan.
//
//   piper_bench_planner                all of it; each measurement is a fresh process, 7 of each
//   piper_bench_planner plan JOB       one measurement of a job file, as `key value` lines
//   piper_bench_planner propose JOB    the same, without the plan
//
// The jobs are ZBV pipelines of a toy model: a stage is one small layer, so that nothing but the
// plan has a size.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "bench/heap.h"
#include "bench/report.h"
#include "core/ir/model_graph.h"
#include "core/pipeline.h"
#include "core/plugin/host.h"
#include "tests/support/toy_model.h"

namespace piper {
namespace {

using bench::median;
using bench::must;
using bench::now;

constexpr int kProcesses = 7, kIdenticalRuns = 20;

struct JobShape {
  std::uint32_t pp, dp, microbatches;
  std::string strategy;
};

constexpr const char* kZbv = "plugin = \"zerobubble\"\nschedule = \"zbv\"\n";

std::size_t tasks_of(const Plan& plan) {
  std::size_t tasks = 0;
  for (const Program& program : plan.programs) {
    tasks += program.tasks.size();
  }
  return tasks;
}

// Child: plans one job, with everything before it apart.
int measure(const std::string& file, bool plans_too) {
  const Config config = must(load_config(file, {}));
  const SearchPath plugins = must(plugin_search_path({PIPER_PLUGIN_DIR, PIPER_BENCH_PLUGIN_DIR}));
  std::ifstream stream(config.model.graph);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  const ModelGraph model = must(parse_model_graph(text, config.model.graph));
  const double asked = now();
  const std::vector<Proposal> proposals = must(propose(config, model, plugins));
  const double proposed = now();
  std::printf("propose_seconds %.6f\n", proposed - asked);
  if (!plans_too) {
    return 0;
  }
  bench::start_heap();
  const Plans plans = must(plan(config, model, proposals));
  const double planned = now();
  const std::size_t train = tasks_of(plans.train), evaluate = tasks_of(plans.evaluate);
  std::printf("plan_seconds %.6f\ntrain_nodes %zu\nnodes %zu\nheap %lld\n", planned - proposed,
              train, train + evaluate, static_cast<long long>(bench::peak_heap_bytes()));
  return 0;
}

// The lines of a child, by key.
std::map<std::string, double> values_of(const std::string& command) {
  std::map<std::string, double> values;
  FILE* pipe = popen(command.c_str(), "r");
  char key[64];
  double value = 0;
  while (std::fscanf(pipe, "%63s %lf", key, &value) == 2) {
    values[key] = value;
  }
  if (pclose(pipe) != 0) {
    std::fprintf(stderr, "failed: %s\n", command.c_str());
    std::exit(1);
  }
  return values;
}

class Bench {
 public:
  explicit Bench(std::string self) : self_(std::move(self)) {}

  void run() {
    nodes_and_growth();
    commands();
    actions();
    identical_runs();
  }

 private:
  static void say(const std::string& metric, double value, const char* format,
                  const std::string& target = "") {
    bench::print("planner", metric, value, format, target);
  }

  std::string job(const std::string& name, const JobShape& shape) {
    test::ToyShape toy;
    toy.layers = 2 * shape.pp;
    const std::string graph = scratch_.write(name + ".graph", print(test::toy_model(toy)));
    return scratch_.write(
        name + ".toml",
        "[model]\ngraph = \"" + graph + "\"\n[mesh]\npp = " + std::to_string(shape.pp) +
            "\ndp = " + std::to_string(shape.dp) +
            "\n[training]\nmicrobatches = " + std::to_string(shape.microbatches) +
            "\nglobal_batch_size = " + std::to_string(shape.dp * shape.microbatches) +
            "\n[[strategy]]\n" + shape.strategy);
  }

  // Medians of fresh processes.
  std::map<std::string, double> medians(const std::string& job, const std::string& mode = "plan") {
    std::map<std::string, std::vector<double>> all;
    for (int i = 0; i < kProcesses; ++i) {
      for (const auto& [key, value] : values_of(self_ + ' ' + mode + ' ' + job)) {
        all[key].push_back(value);
      }
    }
    std::map<std::string, double> result;
    for (const auto& [key, list] : all) {
      result[key] = median(list);
    }
    return result;
  }

  void nodes_and_growth() {
    const std::vector<std::pair<std::string, JobShape>> decades = {
        {"1e4", {8, 1, 88, kZbv}}, {"1e5", {32, 1, 224, kZbv}}, {"1e6", {96, 1, 752, kZbv}}};
    double before = 0;
    for (const auto& [name, shape] : decades) {
      const auto result = medians(job("nodes_" + name, shape));
      const double each = result.at("plan_seconds") / result.at("nodes");
      const bool largest = name == "1e6";
      say("nodes_" + name, result.at("train_nodes"), "%.0f");
      say("nodes_per_second_" + name, 1 / each, "%.0f", largest ? ">= 1000000" : "");
      say("heap_bytes_per_node_" + name, result.at("heap") / result.at("nodes"), "%.0f",
          largest ? "<= 512" : "");
      if (before > 0) {
        say("growth_to_" + name, each / before, "%.2f", "<= 1.35");
      }
      before = each;
    }
  }

  void commands() {
    const auto seconds = [&](const std::string& file) {
      std::vector<double> all;
      for (int i = 0; i < kProcesses; ++i) {
        const double start = now();
        values_of(PIPER_PROGRAM " check " + file + " >" + scratch_.path("out"));
        all.push_back(now() - start);
      }
      return median(all);
    };
    say("check_pp8_v2_m1024_seconds", seconds(job("pp8", {8, 1, 1024, kZbv})), "%.3f", "< 0.5");
    say("check_pp128_v2_m1024_seconds", seconds(job("pp128", {128, 1, 1024, kZbv})), "%.3f", "< 3");
    say("check_4096_ranks_seconds", seconds(job("ranks4096", {16, 256, 64, kZbv})), "%.3f",
        "< 0.5");
    say("nodes_of_4096_over_32_ranks",
        values_of(self_ + " plan " + job("dp256", {16, 256, 64, kZbv})).at("nodes") /
            values_of(self_ + " plan " + job("dp2", {16, 2, 64, kZbv})).at("nodes"),
        "%.3f", "1");
  }

  // A plugin that says the same million actions packed, and with filters; what it does without
  // them is taken off.
  void actions() {
    const auto seconds = [&](const char* way) {
      const std::string strategy =
          std::string("plugin = \"bench_actions\"\nway = \"") + way + "\"\n";
      return medians(job(way, {8, 1, 62500, strategy}), "propose").at("propose_seconds");
    };
    const double without = seconds("none");
    say("chain_us_per_action", seconds("chain") - without, "%.3f", "<= 0.1");
    say("filter_us_per_action", seconds("filter") - without, "%.3f", "<= 0.5");
  }

  // Other addresses, locale, working directory and thread count: one text.
  void identical_runs() {
    const std::string file = job("identical", {16, 2, 64, kZbv});
    const std::vector<std::string> locales = {"C", "C.UTF-8", "POSIX"};
    const std::vector<std::string> folders = {"/", "/tmp", scratch_.path("")};
    std::set<std::string> hashes;
    for (int i = 0; i < kIdenticalRuns; ++i) {
      const std::string command = "cd " + folders[i % 3] + " && LC_ALL=" + locales[i / 3 % 3] +
                                  " OMP_NUM_THREADS=" + std::to_string(1 + i % 4) +
                                  (i % 5 == 0 ? " setarch -R " : " ") + PIPER_PROGRAM " plan " +
                                  file + " | sha256sum";
      FILE* pipe = popen(command.c_str(), "r");
      char hash[65] = "";
      if (std::fscanf(pipe, "%64s", hash) != 1 || pclose(pipe) != 0) {
        std::exit(1);
      }
      hashes.insert(hash);
    }
    for (const std::string& hash : hashes) {
      std::printf("# plan of pp 16, dp 2, 64 micro-batches: sha256 %s\n", hash.c_str());
    }
    say("different_texts_of_20_runs", static_cast<double>(hashes.size()), "%.0f", "1");
  }

  std::string self_;
  bench::Scratch scratch_;
};

}  // namespace
}  // namespace piper

int main(int argc, char** argv) {
  if (argc == 3) {
    return piper::measure(argv[2], std::strcmp(argv[1], "plan") == 0);
  }
  piper::Bench(std::filesystem::canonical("/proc/self/exe").string()).run();
}

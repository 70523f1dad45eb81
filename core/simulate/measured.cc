#include "core/simulate/measured.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

#include "core/simulate/steps.h"

namespace piper {
namespace {

constexpr Op kPasses[] = {Op::forward, Op::backward, Op::backward_input, Op::backward_weight};

// When the last end of each transfer was there.
class Arrivals {
 public:
  Arrivals(const Plan& plan, const Spans& recorded) : plan_(plan) {
    for (std::uint32_t rank = 0; rank < plan.world; ++rank) {
      for_each_transfer(rank, [&](std::uint32_t t, const Key& key) {
        std::uint64_t& last = last_[key];
        last = std::max(last, recorded[rank][t].begin);
      });
    }
  }

  // Calls `f` with each transfer of a rank and when it began.
  template <typename F>
  void of(std::uint32_t rank, F&& f) const {
    for_each_transfer(rank, [&](std::uint32_t t, const Key& key) { f(t, last_.at(key)); });
  }

 private:
  // A pair is known by its smaller node and its member, a collective by its communicator, group and
  // how many launches came before.
  struct Key {
    bool pair;
    std::uint32_t what, member, launch;
    auto operator<=>(const Key&) const = default;
  };

  template <typename F>
  void for_each_transfer(std::uint32_t rank, F&& f) const {
    const Plan::Seat seat = plan_.seat(rank);
    const std::vector<Task>& tasks = plan_.programs[seat.program].tasks;
    std::vector<std::uint32_t> launched(plan_.communicators.size(), 0);
    for (std::uint32_t t = 0; t < tasks.size(); ++t) {
      const Task& task = tasks[t];
      if (is_point_to_point(task.op)) {
        f(t, Key{true, std::min(index(task.node), index(task.peer)), seat.coordinate, 0});
      } else if (valid(task.communicator)) {
        const std::uint32_t comm = index(task.communicator);
        f(t, Key{false, comm, group_of(rank, plan_.communicators[comm]), launched[comm]++});
      }
    }
  }

  static std::uint32_t group_of(std::uint32_t rank, const Communicator& communicator) {
    const auto& ranks = communicator.ranks;
    const auto member = std::find(ranks.begin(), ranks.end(), rank) - ranks.begin();
    return communicator.group_size == 0
               ? 0
               : static_cast<std::uint32_t>(member) / communicator.group_size;
  }

  const Plan& plan_;
  std::map<Key, std::uint64_t> last_;
};

double median(std::vector<std::uint64_t> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? static_cast<double>(values[half])
                                : static_cast<double>(values[half - 1] + values[half]) / 2;
}

// Nanoseconds of the passes of some regions; by index into kPasses.
struct Passes {
  std::vector<std::uint64_t> samples[4];
  double cost[4] = {};
  bool has(int pass) const { return !samples[pass].empty(); }
};

// By the regions of a chunk: one that is on two places is measured on both.
using ByRegions = std::map<std::vector<RegionId>, Passes>;

void complete(ByRegions& all) {
  for (auto& [regions, passes] : all) {
    for (int pass = 0; pass < 4; ++pass) {
      passes.cost[pass] = passes.has(pass) ? median(passes.samples[pass]) : 0;
    }
    if (!passes.has(1)) {
      passes.cost[1] = passes.cost[2] + passes.cost[3];
    }
    if (!passes.has(2) && !passes.has(3)) {
      passes.cost[2] = passes.cost[3] = passes.cost[1] / 2;
    }
  }
}

}  // namespace

Spans without_waits(const Plan& plan, const Spans& recorded) {
  const Arrivals arrivals(plan, recorded);
  Spans spans;
  for (const Program& program : plan.programs) {
    const std::uint32_t rank = program.ranks.front();
    std::vector<TimeSpan>& own = spans.emplace_back(recorded[rank]);
    arrivals.of(rank, [&](std::uint32_t t, std::uint64_t begin) {
      own[t].begin = std::min(begin, own[t].end);
    });
  }
  return spans;
}

Durations durations_of(const Spans& spans) {
  Durations durations;
  for (const std::vector<TimeSpan>& program : spans) {
    durations.emplace_back();
    for (const TimeSpan& span : program) {
      durations.back().push_back(span.end - span.begin);
    }
  }
  return durations;
}

Simulation observed(const Plan& plan, const Spans& spans) {
  const Steps steps = find_steps(plan, durations_of(spans), /*atomic_pairs=*/false);
  Simulation out;
  out.times = spans;
  std::vector<Simulation::Cause> task_of;  // by task number
  std::vector<std::uint64_t> end(steps.count(), 0);
  for (std::uint32_t p = 0; p < spans.size(); ++p) {
    for (std::uint32_t t = 0; t < spans[p].size(); ++t) {
      std::uint64_t& last = end[steps.step_of[steps.base[p] + t]];
      last = std::max(last, spans[p][t].end);
      out.makespan = std::max(out.makespan, last);
      task_of.push_back({p, TaskId{t}});
    }
  }
  std::vector<Simulation::Cause> causes(steps.count());
  std::vector<std::uint64_t> latest(steps.count(), 0);
  for (std::uint32_t step = 0; step < steps.count(); ++step) {
    for (std::uint32_t e = steps.first[step]; e < steps.first[step + 1]; ++e) {
      const std::uint32_t next = steps.after[e];
      if (!valid(causes[next].task) || end[step] > latest[next]) {
        latest[next] = end[step];
        causes[next] = task_of[step];
      }
    }
  }
  for (std::uint32_t p = 0; p < spans.size(); ++p) {
    out.causes.emplace_back();
    for (std::uint32_t t = 0; t < spans[p].size(); ++t) {
      out.causes.back().push_back(causes[steps.step_of[steps.base[p] + t]]);
    }
  }
  return out;
}

std::vector<MeasuredCost> measured_costs(const Plan& plan, const ModelGraph& model,
                                         const Durations& durations) {
  ByRegions all;
  bool used[4] = {};
  for (std::size_t p = 0; p < plan.programs.size(); ++p) {
    const std::vector<Task>& tasks = plan.programs[p].tasks;
    for (std::size_t t = 0; t < tasks.size(); ++t) {
      const auto pass = std::find(std::begin(kPasses), std::end(kPasses), tasks[t].op);
      if (pass != std::end(kPasses)) {
        const auto which = static_cast<std::size_t>(pass - std::begin(kPasses));
        used[which] = true;
        all[plan.chunks[index(tasks[t].chunk)].regions].samples[which].push_back(durations[p][t]);
      }
    }
  }
  complete(all);

  // Where the regions of a chunk are not consecutive, each run has its share, as [cost] shares.
  const std::int64_t rows = rows_of(plan, plan.programs.front(), 0, 0).count;
  const auto weight = [&](RegionId id) {
    return static_cast<double>(model.region(id).flops.at(rows)) + 1;
  };
  std::vector<MeasuredCost> costs;
  for (int pass = 0; pass < 4; ++pass) {
    for (const auto& [regions, passes] : all) {
      double total = 0;
      for (const RegionId id : regions) {
        total += weight(id);
      }
      std::uint32_t next = index(none<RegionId>());
      for (const RegionId id : regions) {
        if (!used[pass]) {
          break;
        }
        if (index(id) != next) {
          costs.push_back({kPasses[pass], index(id), index(id), 0, {}});
        }
        next = index(id) + 1;
        costs.back().last = index(id);
        costs.back().us += passes.cost[pass] * 1e-3 * weight(id) / total;
      }
    }
  }
  return costs;
}

std::string to_toml(const std::vector<MeasuredCost>& costs) {
  std::string text = "# Microseconds of a micro-batch, as measured.\n";
  for (const MeasuredCost& cost : costs) {
    char number[48];
    std::snprintf(number, sizeof number, "%.3f", cost.us);
    text += "\n[[cost]]\nop = \"" + std::string(to_string(cost.op)) + "\"\nregions = \"" +
            std::to_string(cost.first) +
            (cost.last > cost.first ? ".." + std::to_string(cost.last) : "") +
            "\"\nus = " + number + "\n";
  }
  return text;
}

}  // namespace piper

#include "core/simulate/steps.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace piper {
namespace {

constexpr std::uint32_t kNone = 0xffffffff;

class Finder {
 public:
  Finder(const Plan& plan, const Durations& durations, bool atomic_pairs)
      : plan_(plan), durations_(durations), atomic_pairs_(atomic_pairs) {}

  Steps run() {
    out_.base.push_back(0);
    for (const Program& program : plan_.programs) {
      out_.base.push_back(out_.base.back() + static_cast<std::uint32_t>(program.tasks.size()));
    }
    out_.length.assign(out_.base.back(), 0);
    out_.transfers.assign(out_.base.back(), false);
    find();
    connect();
    return std::move(out_);
  }

 private:
  template <typename F>
  void for_each_task(F&& f) const {
    for (std::uint32_t p = 0; p < plan_.programs.size(); ++p) {
      for (std::uint32_t t = 0; t < plan_.programs[p].tasks.size(); ++t) {
        f(p, t, plan_.programs[p].tasks[t]);
      }
    }
  }

  // A pair is known by its smaller node, a collective by its communicator and how many launches of
  // the program came before, a block by its group.
  void find() {
    std::vector<std::uint32_t> of_pair(plan_.origin_of_node.size(), kNone);
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> launches, blocks;
    std::vector<std::uint32_t> launched;
    for_each_task([&](std::uint32_t p, std::uint32_t t, const Task& task) {
      if (t == 0) {
        launched.assign(plan_.communicators.size(), 0);
      }
      const std::uint32_t number = out_.base[p] + t;
      std::uint32_t step = number;
      bool sums = false;  // a block takes as long as its members together
      if (is_point_to_point(task.op)) {
        std::uint32_t& known = of_pair[std::min(index(task.node), index(task.peer))];
        step = known = known == kNone ? number : known;
      } else if (valid(task.communicator)) {
        const std::uint32_t comm = index(task.communicator);
        step = launches.try_emplace({comm, launched[comm]++}, number).first->second;
      } else if (atomic_pairs_ && task.overlap != 0) {
        step = blocks.try_emplace({p, task.overlap}, number).first->second;
        sums = true;
      }
      out_.step_of.push_back(step);
      const std::uint64_t own = durations_[p][t];
      out_.length[step] = sums ? out_.length[step] + own : std::max(out_.length[step], own);
      out_.transfers[step] = is_communication(task.op) && task.bytes != Affine{};
    });
  }

  template <typename F>
  void for_each_edge(F&& f) const {
    for_each_task([&](std::uint32_t p, std::uint32_t t, const Task& task) {
      const Program& program = plan_.programs[p];
      const std::uint32_t base = out_.base[p], to = out_.step_of[base + t];
      const auto add = [&](std::uint32_t from) {
        if (out_.step_of[base + from] != to) {
          f(out_.step_of[base + from], to);
        }
      };
      if (t > program.streams[index(task.stream)].tasks.begin) {
        add(t - 1);
      }
      for (const Wait& wait : program.waits_of(task)) {
        if (!wait.previous) {
          add(index(wait.task));
        }
      }
    });
  }

  void connect() {
    out_.first.assign(out_.count() + 1, 0);
    out_.before.assign(out_.count(), 0);
    for_each_edge([&](std::uint32_t from, std::uint32_t) { ++out_.first[from + 1]; });
    std::partial_sum(out_.first.begin(), out_.first.end(), out_.first.begin());
    out_.after.resize(out_.first.back());
    std::vector<std::uint32_t> fill(out_.first.begin(), out_.first.end() - 1);
    for_each_edge([&](std::uint32_t from, std::uint32_t to) {
      out_.after[fill[from]++] = to;
      ++out_.before[to];
    });
  }

  const Plan& plan_;
  const Durations& durations_;
  bool atomic_pairs_;
  Steps out_;
};

}  // namespace

Steps find_steps(const Plan& plan, const Durations& durations, bool atomic_pairs) {
  return Finder(plan, durations, atomic_pairs).run();
}

}  // namespace piper

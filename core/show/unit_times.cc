#include "core/show/unit_times.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace piper {
namespace {

double duration(Op op) {
  switch (op) {
    case Op::forward:
    case Op::backward_input:
    case Op::backward_weight:
    case Op::recompute:
      return 1;
    case Op::backward:
      return 2;
    case Op::update:
    case Op::state_update:
      return 0.1;
    case Op::token_count:
    case Op::grad_norm:
    case Op::finite_check:
    case Op::loss_report:
    case Op::statistic:
    case Op::input:
      return 0.01;
    default:
      return 0.05;
  }
}

// Tasks of all programs are numbered one after the other. What starts together is one step.
class Clock {
 public:
  explicit Clock(const Plan& plan) : plan_(plan) {
    base_.push_back(0);
    for (const Program& program : plan.programs) {
      base_.push_back(base_.back() + static_cast<std::uint32_t>(program.tasks.size()));
    }
    find_steps();
    connect();
  }

  std::vector<std::vector<UnitTime>> run() {
    std::vector<std::uint32_t> ready;
    for (std::uint32_t step = 0; step < before_.size(); ++step) {
      if (before_[step] == 0) {
        ready.push_back(step);
      }
    }
    std::vector<double> begin(before_.size(), 0);
    std::size_t done = 0;
    for (; done < ready.size(); ++done) {
      const std::uint32_t step = ready[done];
      for (std::uint32_t e = first_[step]; e < first_[step + 1]; ++e) {
        begin[after_[e]] = std::max(begin[after_[e]], begin[step] + length_[step]);
        if (--before_[after_[e]] == 0) {
          ready.push_back(after_[e]);
        }
      }
    }
    std::vector<std::vector<UnitTime>> times;
    for (std::size_t p = 0; p < plan_.programs.size(); ++p) {
      times.emplace_back();
      for (std::uint32_t task = base_[p]; task < base_[p + 1]; ++task) {
        const double at = begin[step_of_[task]];
        times.back().push_back({at, at + length_[step_of_[task]]});
      }
    }
    PIPER_CHECK(done == before_.size(), "a plan that cannot run");
    return times;
  }

 private:
  template <typename F>
  void for_each_task(F&& f) const {
    for (std::size_t p = 0; p < plan_.programs.size(); ++p) {
      for (std::uint32_t t = 0; t < plan_.programs[p].tasks.size(); ++t) {
        f(plan_.programs[p], base_[p] + t, plan_.programs[p].tasks[t]);
      }
    }
  }

  // A step is known by its first task's number.
  void find_steps() {
    std::vector<std::uint32_t> task_of_node;
    std::map<std::pair<CommId, std::uint32_t>, std::uint32_t> launches;  // step of the k-th launch
    std::vector<std::uint32_t> launched(plan_.communicators.size());     // by the program at hand
    const Program* at_hand = nullptr;
    for_each_task([&](const Program& program, std::uint32_t task, const Task& what) {
      if (at_hand != &program) {
        at_hand = &program;
        std::fill(launched.begin(), launched.end(), 0U);
      }
      std::uint32_t step = task;
      if (is_point_to_point(what.op)) {
        const std::uint32_t pair = std::min(index(what.node), index(what.peer));
        task_of_node.resize(std::max<std::size_t>(task_of_node.size(), pair + 1), kNone);
        step = task_of_node[pair] == kNone ? task : task_of_node[pair];
        task_of_node[pair] = step;
      } else if (valid(what.communicator)) {
        step = launches.try_emplace({what.communicator, launched[index(what.communicator)]++}, task)
                   .first->second;
      }
      step_of_.push_back(step);
      length_.push_back(duration(what.op));
    });
  }

  void connect() {
    first_.assign(base_.back() + 1, 0);
    before_.assign(base_.back(), 0);
    for_each_edge([&](std::uint32_t from, std::uint32_t) { ++first_[from + 1]; });
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    after_.resize(first_.back());
    std::vector<std::uint32_t> fill(first_.begin(), first_.end() - 1);
    for_each_edge([&](std::uint32_t from, std::uint32_t to) {
      after_[fill[from]++] = to;
      ++before_[to];
    });
  }

  template <typename F>
  void for_each_edge(F&& f) const {
    for_each_task([&](const Program& program, std::uint32_t task, const Task& what) {
      const std::uint32_t base = task - static_cast<std::uint32_t>(&what - program.tasks.data());
      const Stream& stream = program.streams[index(what.stream)];
      if (task - base > stream.tasks.begin) {
        f(step_of_[task - 1], step_of_[task]);
      }
      for (const Wait& wait : program.waits_of(what)) {
        if (!wait.previous) {
          f(step_of_[base + index(wait.task)], step_of_[task]);
        }
      }
    });
  }

  static constexpr std::uint32_t kNone = 0xffffffff;

  const Plan& plan_;
  std::vector<std::uint32_t> base_;                    // by program: its first task's number
  std::vector<std::uint32_t> step_of_;                 // by task
  std::vector<double> length_;                         // by step
  std::vector<std::uint32_t> first_, after_, before_;  // by step: successors; how many are before
};

}  // namespace

std::vector<std::vector<UnitTime>> unit_times(const Plan& plan) {
  return Clock(plan).run();
}

}  // namespace piper

#include "core/simulate/simulate.h"

#include <algorithm>
#include <limits>
#include <map>
#include <queue>
#include <utility>

#include "core/simulate/steps.h"

namespace piper {
namespace {

constexpr std::uint32_t kNone = 0xffffffff;

// When each step begins and ends, and after which it began.
struct Run {
  std::vector<std::uint64_t> begin, end;
  std::vector<std::uint32_t> cause;
  std::uint32_t ended = 0;

  explicit Run(std::size_t steps) : begin(steps, 0), end(steps, 0), cause(steps, kNone) {}

  // `step` has ended at `end[step]`; tells what comes after. `start` gets each that may now begin.
  template <typename F>
  void finish(Steps& steps, std::uint32_t step, F&& start) {
    ++ended;
    for (std::uint32_t e = steps.first[step]; e < steps.first[step + 1]; ++e) {
      const std::uint32_t next = steps.after[e];
      if (cause[next] == kNone || end[step] > begin[next]) {
        begin[next] = end[step];
        cause[next] = step;
      }
      if (--steps.before[next] == 0) {
        start(next);
      }
    }
  }
};

std::vector<std::uint32_t> first_steps(const Steps& steps) {
  std::vector<std::uint32_t> ready;
  for (std::uint32_t n = 0; n < steps.count(); ++n) {
    if (steps.is_step(n) && steps.before[n] == 0) {
      ready.push_back(n);
    }
  }
  return ready;
}

// Every step takes its length: the longest way to it.
Run run_freely(Steps& steps) {
  Run run(steps.count());
  std::vector<std::uint32_t> ready = first_steps(steps);
  for (std::size_t i = 0; i < ready.size(); ++i) {
    const std::uint32_t step = ready[i];
    run.end[step] = run.begin[step] + steps.length[step];
    run.finish(steps, step, [&](std::uint32_t next) { ready.push_back(next); });
  }
  return run;
}

// Transfers share links: each goes on at the rate of its busiest link, a share of what is there.
class SharedRun {
 public:
  SharedRun(const Plan& plan, Steps& steps)
      : steps_(steps),
        run_(steps.count()),
        links_(steps.count()),
        users_(2 * plan.programs.size()) {
    for (std::uint32_t p = 0; p < plan.programs.size(); ++p) {
      const std::vector<Task>& tasks = plan.programs[p].tasks;
      for (std::uint32_t t = 0; t < tasks.size(); ++t) {
        const std::uint32_t step = steps.step_of[steps.base[p] + t];
        if (steps.transfers[step]) {
          const Direction direction = traits(tasks[t].op).direction;
          if (direction != Direction::in) {
            links_[step].push_back(2 * p);
          }
          if (direction != Direction::out) {
            links_[step].push_back(2 * p + 1);
          }
        }
      }
    }
  }

  Run run() {
    for (const std::uint32_t step : first_steps(steps_)) {
      starting_.push({0, step});
    }
    while (!starting_.empty() || !ending_.empty() || !moving_.empty()) {
      advance(next_time());
      while (!ending_.empty() && ending_.top().first == now_) {
        const std::uint32_t step = ending_.top().second;
        ending_.pop();
        end(step);
      }
      for (std::size_t i = 0; i < moving_.size();) {
        if (moving_[i].left < kDone) {
          const std::uint32_t step = moving_[i].step;
          moving_.erase(moving_.begin() + static_cast<std::ptrdiff_t>(i));
          for (const std::uint32_t link : links_[step]) {
            --users_[link];
          }
          end(step);
        } else {
          ++i;
        }
      }
      while (!starting_.empty() && starting_.top().first <= now_) {
        const std::uint32_t step = starting_.top().second;
        starting_.pop();
        if (!steps_.transfers[step] || steps_.length[step] == 0) {
          ending_.push({now_ + steps_.length[step], step});
          continue;
        }
        moving_.push_back({step, static_cast<double>(steps_.length[step])});
        for (const std::uint32_t link : links_[step]) {
          ++users_[link];
        }
      }
    }
    return std::move(run_);
  }

 private:
  using Event = std::pair<std::uint64_t, std::uint32_t>;  // time, step
  using Events = std::priority_queue<Event, std::vector<Event>, std::greater<>>;
  struct Moving {
    std::uint32_t step;
    double left;  // of its length
  };
  static constexpr double kDone = 0.5;  // ticks

  double rate(std::uint32_t step) const {
    std::uint32_t most = 1;
    for (const std::uint32_t link : links_[step]) {
      most = std::max(most, users_[link]);
    }
    return 1.0 / most;
  }

  std::uint64_t next_time() const {
    std::uint64_t time = std::numeric_limits<std::uint64_t>::max();
    time = starting_.empty() ? time : std::min(time, std::max(now_, starting_.top().first));
    time = ending_.empty() ? time : std::min(time, ending_.top().first);
    for (const Moving& moving : moving_) {
      time = std::min(
          time, now_ + std::max<std::uint64_t>(
                           1, static_cast<std::uint64_t>(moving.left / rate(moving.step) + 0.5)));
    }
    return time;
  }

  void advance(std::uint64_t time) {
    for (Moving& moving : moving_) {
      moving.left -= static_cast<double>(time - now_) * rate(moving.step);
    }
    now_ = time;
  }

  void end(std::uint32_t step) {
    run_.end[step] = now_;
    run_.finish(steps_, step, [&](std::uint32_t next) { starting_.push({now_, next}); });
  }

  Steps& steps_;
  Run run_;
  std::vector<std::vector<std::uint32_t>> links_;  // by step: out of a place, 2p; into it, 2p + 1
  std::vector<std::uint32_t> users_;               // by link
  Events starting_, ending_;
  std::vector<Moving> moving_;
  std::uint64_t now_ = 0;
};

Simulation result(const Plan& plan, const Durations& durations, bool atomic_pairs,
                  const Steps& steps, const Run& run) {
  Simulation out;
  // By step: the time that its members had so far and the one before; what others wait for, which
  // is a block's last member.
  std::vector<std::uint64_t> inside(steps.count(), 0);
  std::vector<std::uint32_t> before(steps.count(), kNone), last(steps.count(), kNone);
  std::vector<std::uint32_t> program_of;
  for (std::uint32_t p = 0; p < plan.programs.size(); ++p) {
    program_of.resize(steps.base[p + 1], p);
    for (std::uint32_t n = steps.base[p]; n < steps.base[p + 1]; ++n) {
      const bool of_block = atomic_pairs && plan.programs[p].tasks[n - steps.base[p]].overlap != 0;
      last[steps.step_of[n]] = of_block ? n : steps.step_of[n];
    }
  }
  for (std::uint32_t p = 0; p < plan.programs.size(); ++p) {
    out.times.emplace_back();
    out.causes.emplace_back();
    for (std::uint32_t n = steps.base[p]; n < steps.base[p + 1]; ++n) {
      const std::uint32_t step = steps.step_of[n];
      std::uint32_t cause = run.cause[step] == kNone ? kNone : last[run.cause[step]];
      TimeSpan span{run.begin[step], run.end[step]};
      if (const Task& task = plan.programs[p].tasks[n - steps.base[p]];
          task.overlap != 0 && atomic_pairs) {  // one after the other inside the block
        span.begin += inside[step];
        inside[step] += durations[p][n - steps.base[p]];
        span.end = run.begin[step] + inside[step];
        if (n != step) {
          cause = before[step];
        }
        before[step] = n;
      }
      out.times.back().push_back(span);
      out.causes.back().push_back(
          cause == kNone ? Simulation::Cause{}
                         : Simulation::Cause{program_of[cause],
                                             TaskId{cause - steps.base[program_of[cause]]}});
      out.makespan = std::max(out.makespan, run.end[step]);
    }
  }
  return out;
}

}  // namespace

Durations durations_of(const Plan& plan, const Costs& costs) {
  Durations durations;
  for (const Program& program : plan.programs) {
    durations.emplace_back();
    for (const Task& task : program.tasks) {
      durations.back().push_back(costs.of(task));
    }
  }
  return durations;
}

Durations unit_durations(const Plan& plan, const ModelGraph& model) {
  const std::vector<std::string>& names = plan.tag_names.empty() ? model.tag_names : plan.tag_names;
  const auto stage_tag = std::find(names.begin(), names.end(), "PP") - names.begin();
  const auto stage_of = [&](std::size_t c) {
    const Chunk& chunk = plan.chunks[c];
    for (const Tag& tag : chunk.tags) {
      if (index(tag.name) == stage_tag) {
        return std::pair{std::int64_t{chunk.program}, std::int64_t{tag.index}};
      }
    }
    return std::pair{std::int64_t{-1}, static_cast<std::int64_t>(c)};  // a stage of its own
  };
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint64_t> pieces;
  for (std::size_t c = 0; c < plan.chunks.size(); ++c) {
    ++pieces[stage_of(c)];
  }
  Durations durations;
  for (const Program& program : plan.programs) {
    durations.emplace_back();
    for (const Task& task : program.tasks) {
      const std::uint64_t units = traits(task.op).units / kUnit;
      durations.back().push_back(
          runs_chunk(task.op) ? units * kUnitTicks / pieces[stage_of(index(task.chunk))] : 0);
    }
  }
  return durations;
}

Expected<Simulation> simulate(const Plan& plan, const Durations& durations,
                              const SimulateOptions& options) {
  Steps steps = find_steps(plan, durations, options.atomic_pairs);
  const Run run = options.contention ? SharedRun(plan, steps).run() : run_freely(steps);
  std::uint32_t count = 0;
  for (std::uint32_t n = 0; n < steps.count(); ++n) {
    count += steps.is_step(n) ? 1 : 0;
  }
  if (run.ended != count) {
    PIPER_CHECK(options.atomic_pairs, "a plan that cannot run");
    return fail(error("simulate.pair",
                      "an overlap group that communicates inside cannot be one block: leave out "
                      "`--pair atomic`"));
  }
  return result(plan, durations, options.atomic_pairs, steps, run);
}

}  // namespace piper

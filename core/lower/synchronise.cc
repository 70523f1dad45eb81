#include "core/lower/synchronise.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "core/lower/lifetimes.h"

namespace piper {
namespace {

class Synchroniser {
 public:
  Synchroniser(const Plan& plan, Program& program, const TaskTimes& times)
      : plan_(plan), program_(program), times_(times) {
    timeline_.resize(tasks());
    std::iota(timeline_.begin(), timeline_.end(), 0U);
    std::stable_sort(timeline_.begin(), timeline_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return times_.start[a] < times_.start[b];
    });
  }

  void run() {
    lifetimes_ = choose_lifetimes(plan_, program_, times_, timeline_);
    find_waits();
    store();
  }

 private:
  std::uint32_t tasks() const { return static_cast<std::uint32_t>(program_.tasks.size()); }
  std::uint32_t streams() const { return static_cast<std::uint32_t>(program_.streams.size()); }
  std::uint32_t stream_of(std::uint32_t task) const { return index(program_.tasks[task].stream); }
  std::uint32_t position(std::uint32_t task) const {
    return task - program_.streams[stream_of(task)].tasks.begin;
  }
  // How many tasks of its stream have ended, counted over two periods, when this one has.
  std::uint32_t done(std::uint32_t task, std::uint32_t period) const {
    return position(task) + 1 + period * program_.streams[stream_of(task)].tasks.count;
  }
  // need_[s]: how many tasks of stream s, counted over two periods, must have ended.
  void need(std::uint32_t task, std::uint32_t period) {
    const std::uint32_t s = stream_of(task);
    need_[s] = std::max(need_[s], done(task, period));
  }

  void need_all(const Predecessors& after, std::uint32_t task, std::uint32_t period) {
    for (std::uint32_t e = after.first[task]; e < after.first[task + 1]; ++e) {
      need(after.pairs[e].second, period);
    }
  }

  void need_users(std::uint32_t buffer, bool readers_too) {
    const std::uint32_t* last = &last_access_[static_cast<std::size_t>(buffer) * (2 * streams())];
    for (std::uint32_t s = 0; s < streams(); ++s) {
      need_[s] = std::max(need_[s], last[s]);
      if (readers_too) {
        need_[s] = std::max(need_[s], last[streams() + s]);
      }
    }
  }

  void note_access(std::uint32_t buffer, std::uint32_t task, std::uint32_t period, bool write) {
    const std::uint32_t s = stream_of(task);
    last_access_[static_cast<std::size_t>(buffer) * (2 * streams()) + (write ? 0 : streams()) + s] =
        done(task, period);
  }

  // What `task` must come after: writers of what it reads, users of what it writes, edges, frees
  // and reuse of the arena.
  void collect_needs(std::uint32_t t, std::uint32_t period) {
    std::fill(need_.begin(), need_.end(), 0);
    const Task& task = program_.tasks[t];
    for (const BufferId buffer : program_.reads_of(task)) {
      need_users(index(buffer), false);
    }
    for (const BufferId buffer : program_.writes_of(task)) {
      need_users(index(buffer), true);
    }
    for (std::uint32_t e = times_.first[t]; e < times_.first[t + 1]; ++e) {
      need(index(times_.before[e]), period);
    }
    need_all(lifetimes_.after, t, period);
    if (period == 1) {
      need_all(lifetimes_.after_previous, t, 0);
    }
  }

  void note_accesses(std::uint32_t t, std::uint32_t period) {
    const Task& task = program_.tasks[t];
    for (const BufferId buffer : program_.reads_of(task)) {
      note_access(index(buffer), t, period, false);
    }
    for (const BufferId buffer : program_.writes_of(task)) {
      note_access(index(buffer), t, period, true);
    }
    for (std::uint32_t f = lifetimes_.frees_first[t]; f < lifetimes_.frees_first[t + 1]; ++f) {
      note_access(index(lifetimes_.frees[f]), t, period, false);
    }
  }

  std::uint32_t* clock(std::uint32_t task, std::uint32_t period) {
    return &clocks_[(static_cast<std::size_t>(period) * tasks() + task) * streams()];
  }

  static void merge(std::uint32_t* into, const std::uint32_t* from, std::uint32_t count) {
    for (std::uint32_t s = 0; s < count; ++s) {
      into[s] = std::max(into[s], from[s]);
    }
  }

  // The task that makes stream s reach `done`, and its period.
  std::pair<std::uint32_t, std::uint32_t> task_at(std::uint32_t s, std::uint32_t done) const {
    const Range range = program_.streams[s].tasks;
    const std::uint32_t period = done > range.count ? 1 : 0;
    return {range.begin + done - 1 - period * range.count, period};
  }

  void find_waits() {
    const std::uint32_t lanes = streams();
    clocks_ = std::make_unique_for_overwrite<std::uint32_t[]>(static_cast<std::size_t>(2) *
                                                              tasks() * lanes);
    last_access_.assign(program_.buffers.size() * 2 * lanes, 0);
    need_.assign(lanes, 0);
    waits_of_.assign(std::size_t{2} * tasks(), Range{});
    for (const std::uint32_t t : timeline_) {
      std::uint32_t* own = clock(t, 0);
      if (position(t) > 0) {
        std::copy_n(clock(t - 1, 0), lanes, own);
      } else {
        std::fill_n(own, lanes, 0);
      }
      visit(t, 0, own);
    }
    find_waits_for_the_period_before();
  }

  // Goes on into a second period, with the same waits inside it, until every stream is known to be
  // after all of the first: then nothing further can need a wait for it.
  void find_waits_for_the_period_before() {
    const std::uint32_t lanes = streams();
    std::vector<bool> caught_up(lanes, false);
    std::uint32_t behind = 0;
    for (const Stream& stream : program_.streams) {
      behind += stream.tasks.count > 0 ? 1 : 0;
    }
    for (const std::uint32_t t : timeline_) {
      const std::uint32_t s = stream_of(t);
      const Range own_stream = program_.streams[s].tasks;
      std::uint32_t* own = clock(t, 1);
      std::copy_n(
          position(t) > 0 ? clock(t - 1, 1) : clock(own_stream.begin + own_stream.count - 1, 0),
          lanes, own);
      const Range inside = waits_of_[t];
      for (std::uint32_t w = inside.begin; w < inside.begin + inside.count; ++w) {
        merge(own, clock(index(waits_[w].task), 1), lanes);
      }
      visit(t, 1, own);
      if (!caught_up[s] && is_after_a_period(own)) {
        caught_up[s] = true;
        if (--behind == 0) {
          return;
        }
      }
    }
  }

  bool is_after_a_period(const std::uint32_t* clock) const {
    for (std::uint32_t s = 0; s < streams(); ++s) {
      if (clock[s] < program_.streams[s].tasks.count) {
        return false;
      }
    }
    return true;
  }

  void visit(std::uint32_t t, std::uint32_t period, std::uint32_t* own) {
    collect_needs(t, period);
    add_waits(t, period, own);
    note_accesses(t, period);
    own[stream_of(t)] = done(t, period);
  }

  // The latest first: it often implies the others.
  void add_waits(std::uint32_t t, std::uint32_t period, std::uint32_t* own) {
    Range& range = waits_of_[period * tasks() + t];
    range.begin = static_cast<std::uint32_t>(waits_.size());
    while (true) {
      std::uint32_t latest = streams();
      std::uint64_t latest_end = 0;
      for (std::uint32_t s = 0; s < streams(); ++s) {
        if (s == stream_of(t) || need_[s] <= own[s]) {
          continue;
        }
        const auto [task, in] = task_at(s, need_[s]);
        const std::uint64_t end = times_.end[task] + (in == 1 ? kPeriod : 0);
        if (latest == streams() || end > latest_end) {
          latest = s;
          latest_end = end;
        }
      }
      if (latest == streams()) {
        return;
      }
      const auto [task, in] = task_at(latest, need_[latest]);
      PIPER_CHECK(period == 1 || in == 0, "a first step that waits for the second");
      PIPER_CHECK(period == 0 || in == 0, "a wait inside a period that the first one did not have");
      waits_.push_back({TaskId{task}, period == 1});
      ++range.count;
      merge(own, clock(task, in), streams());
    }
  }

  void store() {
    program_.waits.reserve(waits_.size());
    program_.access.reserve(program_.access.size() + lifetimes_.frees.size());
    const auto earlier = [](const Wait& a, const Wait& b) { return index(a.task) < index(b.task); };
    for (std::uint32_t t = 0; t < tasks(); ++t) {
      Task& task = program_.tasks[t];
      task.waits.begin = static_cast<std::uint32_t>(program_.waits.size());
      for (const std::uint32_t period : {0U, 1U}) {
        const Range range = waits_of_[period * tasks() + t];
        const auto first = waits_.begin() + range.begin, last = first + range.count;
        std::sort(first, last, earlier);
        program_.waits.insert(program_.waits.end(), first, last);
        task.waits.count += range.count;
      }
      for (const Wait& wait : program_.waits_of(task)) {
        program_.tasks[index(wait.task)].records = true;
      }
      task.frees = {static_cast<std::uint32_t>(program_.access.size()),
                    lifetimes_.frees_first[t + 1] - lifetimes_.frees_first[t]};
      program_.access.insert(program_.access.end(),
                             lifetimes_.frees.begin() + lifetimes_.frees_first[t],
                             lifetimes_.frees.begin() + lifetimes_.frees_first[t + 1]);
    }
  }

  static constexpr std::uint64_t kPeriod = std::uint64_t{1} << 62;

  const Plan& plan_;
  Program& program_;
  const TaskTimes& times_;
  std::vector<std::uint32_t> timeline_;  // tasks by start
  Lifetimes lifetimes_;
  std::vector<Wait> waits_;      // as they are found
  std::vector<Range> waits_of_;  // by period and task
  // By period, task, stream: tasks of the stream known to have ended. Each row is written before it
  // is read.
  std::unique_ptr<std::uint32_t[]> clocks_;
  std::vector<std::uint32_t> last_access_;  // by buffer: writers by stream, then readers by stream
  std::vector<std::uint32_t> need_;
};

}  // namespace

void synchronise(const Plan& plan, Program& program, const TaskTimes& times) {
  Synchroniser(plan, program, times).run();
}

}  // namespace piper

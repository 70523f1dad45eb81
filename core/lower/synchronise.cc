#include "core/lower/synchronise.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <queue>
#include <utility>

namespace piper {
namespace {

constexpr std::uint32_t kFreeSlack =
    1;  // compute tasks after the first that could free what was sent
constexpr std::uint32_t kSlotSlack = 1;  // slots more than the timeline needs

// Whether what the operation allocates goes into the arena: received values, gathered parameters.
bool has_known_size(Op op) {
  return op == Op::recv || op == Op::all_gather;
}

class Synchroniser {
 public:
  Synchroniser(Program& program, const TaskTimes& times) : program_(program), times_(times) {
    timeline_.resize(tasks());
    std::iota(timeline_.begin(), timeline_.end(), 0U);
    std::stable_sort(timeline_.begin(), timeline_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return times_.start[a] < times_.start[b];
    });
  }

  void run() {
    find_users();
    choose_frees();
    choose_slots();
    index_by_task();
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
  bool is_compute(std::uint32_t task) const {
    return program_.streams[stream_of(task)].kind == Stream::Kind::compute;
  }

  // Users of each buffer that end up in a free: the last compute one, and the others.
  void find_users() {
    last_compute_.assign(program_.buffers.size(), kNoTask);
    first_user_.assign(program_.buffers.size() + 1, 0);
    const auto for_each_user = [&](auto&& use) {
      for (std::uint32_t t = 0; t < tasks(); ++t) {
        for (const BufferId buffer : program_.reads_of(program_.tasks[t])) {
          use(index(buffer), t);
        }
        for (const BufferId buffer : program_.writes_of(program_.tasks[t])) {
          use(index(buffer), t);
        }
      }
    };
    for_each_user([&](std::uint32_t buffer, std::uint32_t t) {
      if (program_.buffers[buffer].persistent()) {
        return;
      }
      if (!is_compute(t)) {
        ++first_user_[buffer + 1];
      } else if (last_compute_[buffer] == kNoTask || t > last_compute_[buffer]) {
        last_compute_[buffer] = t;
      }
    });
    std::partial_sum(first_user_.begin(), first_user_.end(), first_user_.begin());
    users_.resize(first_user_.back());
    std::vector<std::uint32_t> fill(first_user_.begin(), first_user_.end() - 1);
    for_each_user([&](std::uint32_t buffer, std::uint32_t t) {
      if (!program_.buffers[buffer].persistent() && !is_compute(t)) {
        users_[fill[buffer]++] = t;
      }
    });
  }

  void choose_frees() {
    const Range compute = program_.streams[0].tasks;
    const auto first = times_.start.begin() + compute.begin, last = first + compute.count;
    for (std::uint32_t b = 0; b < program_.buffers.size(); ++b) {
      Buffer& buffer = program_.buffers[b];
      if (buffer.persistent()) {
        continue;
      }
      std::uint64_t ended = 0;
      for (std::uint32_t u = first_user_[b]; u < first_user_[b + 1]; ++u) {
        ended = std::max(ended, times_.end[users_[u]]);
      }
      // The first compute task that starts when all other users have ended.
      auto task =
          compute.begin + static_cast<std::uint32_t>(std::lower_bound(first, last, ended) - first);
      if (last_compute_[b] != kNoTask && task <= last_compute_[b]) {
        task = last_compute_[b];
      } else {
        task = std::min(task + kFreeSlack, compute.begin + compute.count - 1);
      }
      buffer.free = TaskId{task};
      for (std::uint32_t u = first_user_[b]; u < first_user_[b + 1]; ++u) {
        extra_.emplace_back(task, users_[u]);
      }
    }
  }

  // Slots for received values, by size: an allocation takes one that is free on the timeline, the
  // longest-free first.
  void choose_slots() {
    std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::uint32_t>>
        sizes;  // bytes -> buffers, by alloc
    for (const std::uint32_t t : timeline_) {
      if (!has_known_size(program_.tasks[t].op)) {
        continue;
      }
      for (const BufferId id : program_.writes_of(program_.tasks[t])) {
        const Buffer& buffer = program_.buffer(id);
        if (!buffer.persistent() && index(buffer.alloc) == t) {
          sizes[{buffer.bytes.per_row, buffer.bytes.fixed}].push_back(index(id));
        }
      }
    }
    for (const auto& [bytes, buffers] : sizes) {
      const std::uint32_t limit = peak(buffers) + kSlotSlack;
      using Freed = std::pair<std::uint64_t, std::uint32_t>;  // time, slot
      std::priority_queue<Freed, std::vector<Freed>, std::greater<>> freed;
      const auto base = static_cast<std::uint32_t>(program_.slots.size());
      std::uint32_t used = 0;
      std::vector<std::uint32_t> last_user;  // by slot: the buffer that had it
      for (const std::uint32_t b : buffers) {
        std::uint32_t slot = used;
        if (used < limit) {
          ++used;
          last_user.push_back(b);
          program_.slots.push_back({Affine{bytes.first, bytes.second}});
        } else {
          slot = freed.top().second;
          freed.pop();
          extra_.emplace_back(index(program_.buffers[b].alloc),
                              index(program_.buffers[last_user[slot]].free));
          last_user[slot] = b;
        }
        program_.buffers[b].slot = base + slot;
        freed.push({times_.end[index(program_.buffers[b].free)], slot});
      }
    }
  }

  // The most of these buffers that are live at once on the timeline.
  std::uint32_t peak(const std::vector<std::uint32_t>& buffers) const {
    std::priority_queue<std::uint64_t, std::vector<std::uint64_t>, std::greater<>> ends;
    std::size_t most = 0;
    for (const std::uint32_t b : buffers) {
      while (!ends.empty() && ends.top() <= times_.start[index(program_.buffers[b].alloc)]) {
        ends.pop();
      }
      ends.push(times_.end[index(program_.buffers[b].free)]);
      most = std::max(most, ends.size());
    }
    return static_cast<std::uint32_t>(most);
  }

  // Frees and further predecessors, in the order of tasks.
  void index_by_task() {
    frees_first_.assign(tasks() + 1, 0);
    extra_first_.assign(tasks() + 1, 0);
    for (const Buffer& buffer : program_.buffers) {
      if (!buffer.persistent()) {
        ++frees_first_[index(buffer.free) + 1];
      }
    }
    std::partial_sum(frees_first_.begin(), frees_first_.end(), frees_first_.begin());
    frees_.resize(frees_first_.back());
    std::vector<std::uint32_t> fill(frees_first_.begin(), frees_first_.end() - 1);
    for (std::uint32_t b = 0; b < program_.buffers.size(); ++b) {
      if (!program_.buffers[b].persistent()) {
        frees_[fill[index(program_.buffers[b].free)]++] = BufferId{b};
      }
    }
    std::sort(extra_.begin(), extra_.end());
    for (const auto& entry : extra_) {
      ++extra_first_[entry.first + 1];
    }
    std::partial_sum(extra_first_.begin(), extra_first_.end(), extra_first_.begin());
  }

  // need_[s]: how many tasks of stream s, counted over two periods, must have ended.
  void need(std::uint32_t task, std::uint32_t period) {
    const std::uint32_t s = stream_of(task);
    need_[s] = std::max(need_[s], done(task, period));
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
  // and slots.
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
    for (std::uint32_t e = extra_first_[t]; e < extra_first_[t + 1]; ++e) {
      need(extra_[e].second, period);
    }
    for (const BufferId buffer : program_.writes_of(task)) {
      const Buffer& written = program_.buffer(buffer);
      if (period == 1 && written.slot != Buffer::kNoSlot && index(written.alloc) == t &&
          last_of_slot_[written.slot] != kNoTask && first_of_slot_[written.slot] == t) {
        need(last_of_slot_[written.slot], 0);
      }
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
    for (std::uint32_t f = frees_first_[t]; f < frees_first_[t + 1]; ++f) {
      note_access(index(frees_[f]), t, period, false);
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
    clocks_.assign(static_cast<std::size_t>(2) * tasks() * lanes, 0);
    last_access_.assign(program_.buffers.size() * 2 * lanes, 0);
    need_.assign(lanes, 0);
    waits_of_.assign(std::size_t{2} * tasks(), Range{});
    slots_first_and_last();
    for (std::uint32_t period = 0; period < 2; ++period) {
      for (const std::uint32_t t : timeline_) {
        std::uint32_t* own = clock(t, period);
        const std::uint32_t s = stream_of(t);
        if (position(t) > 0) {
          merge(own, clock(t - 1, period), lanes);
        } else if (period == 1) {
          merge(own,
                clock(program_.streams[s].tasks.begin + program_.streams[s].tasks.count - 1, 0),
                lanes);
        }
        if (period == 1) {
          const Range inside = waits_of_[t];
          for (std::uint32_t w = inside.begin; w < inside.begin + inside.count; ++w) {
            merge(own, clock(index(waits_[w].task), 1), lanes);
          }
        }
        collect_needs(t, period);
        add_waits(t, period, own);
        note_accesses(t, period);
        own[s] = done(t, period);
      }
    }
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

  void slots_first_and_last() {
    first_of_slot_.assign(program_.slots.size(), kNoTask);
    last_of_slot_.assign(program_.slots.size(), kNoTask);
    std::vector<std::uint64_t> first_time(program_.slots.size()), last_time(program_.slots.size());
    for (const Buffer& buffer : program_.buffers) {
      if (buffer.slot == Buffer::kNoSlot) {
        continue;
      }
      const std::uint32_t alloc = index(buffer.alloc), free = index(buffer.free);
      if (first_of_slot_[buffer.slot] == kNoTask || times_.start[alloc] < first_time[buffer.slot]) {
        first_of_slot_[buffer.slot] = alloc;
        first_time[buffer.slot] = times_.start[alloc];
      }
      if (last_of_slot_[buffer.slot] == kNoTask || times_.end[free] > last_time[buffer.slot]) {
        last_of_slot_[buffer.slot] = free;
        last_time[buffer.slot] = times_.end[free];
      }
    }
  }

  void store() {
    program_.waits.reserve(waits_.size());
    program_.access.reserve(program_.access.size() + frees_.size());
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
                    frees_first_[t + 1] - frees_first_[t]};
      program_.access.insert(program_.access.end(), frees_.begin() + frees_first_[t],
                             frees_.begin() + frees_first_[t + 1]);
    }
  }

  static constexpr std::uint32_t kNoTask = 0xffffffff;
  static constexpr std::uint64_t kPeriod = std::uint64_t{1} << 62;

  Program& program_;
  const TaskTimes& times_;
  std::vector<std::uint32_t> timeline_;                           // tasks by start
  std::vector<std::uint32_t> last_compute_, first_user_, users_;  // by buffer
  // A task, and what it must come after besides edges and data.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> extra_;
  std::vector<std::uint32_t> extra_first_, frees_first_;  // by task
  std::vector<BufferId> frees_;
  std::vector<Wait> waits_;      // as they are found
  std::vector<Range> waits_of_;  // by period and task
  std::vector<std::uint32_t>
      clocks_;  // by period, task, stream: tasks of the stream known to have ended
  std::vector<std::uint32_t> last_access_;  // by buffer: writers by stream, then readers by stream
  std::vector<std::uint32_t> need_, first_of_slot_, last_of_slot_;
};

}  // namespace

void synchronise(Program& program, const TaskTimes& times) {
  Synchroniser(program, times).run();
}

}  // namespace piper

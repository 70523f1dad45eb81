#include "core/lower/lifetimes.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <queue>

namespace piper {
namespace {

constexpr std::uint32_t kFreeSlack =
    1;  // compute tasks after the first that could free what was sent
constexpr std::uint32_t kSlotSlack = 1;  // slots more than the timeline needs
constexpr std::uint32_t kNoTask = 0xffffffff;

// Whether what the operation allocates goes into the arena: received values, gathered parameters.
bool has_known_size(Op op) {
  return op == Op::recv || op == Op::all_gather;
}

class Chooser {
 public:
  Chooser(Program& program, const TaskTimes& times, const std::vector<std::uint32_t>& timeline)
      : program_(program), times_(times), timeline_(timeline) {}

  Lifetimes run() {
    find_users();
    choose_frees();
    choose_slots();
    index_by_task();
    return std::move(out_);
  }

 private:
  std::uint32_t tasks() const { return static_cast<std::uint32_t>(program_.tasks.size()); }
  bool is_compute(std::uint32_t task) const {
    return program_.streams[index(program_.tasks[task].stream)].kind == Stream::Kind::compute;
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
        out_.after.emplace_back(task, users_[u]);
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
          out_.after.emplace_back(index(program_.buffers[b].alloc),
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
    out_.frees_first.assign(tasks() + 1, 0);
    out_.after_first.assign(tasks() + 1, 0);
    for (const Buffer& buffer : program_.buffers) {
      if (!buffer.persistent()) {
        ++out_.frees_first[index(buffer.free) + 1];
      }
    }
    std::partial_sum(out_.frees_first.begin(), out_.frees_first.end(), out_.frees_first.begin());
    out_.frees.resize(out_.frees_first.back());
    std::vector<std::uint32_t> fill(out_.frees_first.begin(), out_.frees_first.end() - 1);
    for (std::uint32_t b = 0; b < program_.buffers.size(); ++b) {
      if (!program_.buffers[b].persistent()) {
        out_.frees[fill[index(program_.buffers[b].free)]++] = BufferId{b};
      }
    }
    std::sort(out_.after.begin(), out_.after.end());
    for (const auto& entry : out_.after) {
      ++out_.after_first[entry.first + 1];
    }
    std::partial_sum(out_.after_first.begin(), out_.after_first.end(), out_.after_first.begin());
  }

  Program& program_;
  const TaskTimes& times_;
  const std::vector<std::uint32_t>& timeline_;
  std::vector<std::uint32_t> last_compute_, first_user_, users_;  // by buffer
  Lifetimes out_;
};

}  // namespace

Lifetimes choose_lifetimes(Program& program, const TaskTimes& times,
                           const std::vector<std::uint32_t>& timeline) {
  return Chooser(program, times, timeline).run();
}

}  // namespace piper

#include "core/lower/lifetimes.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <queue>

namespace piper {
namespace {

constexpr std::uint32_t kFreeSlack =
    1;  // compute tasks after the first that could free what was sent
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

  // Slots for received values and gathered parameters. What grows with the rows has slots of its
  // own.
  void choose_slots() {
    std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::uint32_t>> kinds;  // by alloc
    for (const std::uint32_t t : timeline_) {
      if (!has_known_size(program_.tasks[t].op)) {
        continue;
      }
      for (const BufferId id : program_.writes_of(program_.tasks[t])) {
        const Buffer& buffer = program_.buffer(id);
        if (!buffer.persistent() && index(buffer.alloc) == t) {
          kinds[kind_of(buffer.bytes)].push_back(index(id));
        }
      }
    }
    for (auto& [kind, buffers] : kinds) {
      const auto other_size = [&](std::uint32_t b) { return size(b) != size(buffers[0]); };
      if (std::none_of(buffers.begin(), buffers.end(), other_size)) {
        share_equal(buffers);
      } else {
        share_larger(std::move(buffers));
      }
    }
  }

  // Sizes of one kind can be compared, whatever the rows are.
  static std::pair<std::int64_t, std::int64_t> kind_of(Affine bytes) {
    return bytes.per_row == 0 ? std::pair<std::int64_t, std::int64_t>{0, 0}
           : bytes.fixed == 0 ? std::pair<std::int64_t, std::int64_t>{1, 0}
                              : std::pair{bytes.per_row, bytes.fixed};
  }
  std::int64_t size(std::uint32_t b) const {
    const Affine bytes = program_.buffers[b].bytes;
    return bytes.per_row == 0 ? bytes.fixed : bytes.per_row;
  }
  std::uint64_t begin(std::uint32_t b) const {
    return times_.start[index(program_.buffers[b].alloc)];
  }
  std::uint64_t end(std::uint32_t b) const { return times_.end[index(program_.buffers[b].free)]; }

  // The slot that is free for the longest, or one more: as many as are live at once.
  void share_equal(const std::vector<std::uint32_t>& buffers) {
    using Busy = std::pair<std::uint64_t, std::uint32_t>;  // until when, the buffer
    std::priority_queue<Busy, std::vector<Busy>, std::greater<>> busy;
    for (const std::uint32_t b : buffers) {
      if (busy.empty() || busy.top().first > begin(b)) {
        add_slot(b);
      } else {
        take_slot(b, busy.top().second);
        busy.pop();
      }
      busy.push({end(b), b});
    }
  }

  // The largest first, each in the first slot that is free while it lives: smaller ones go where
  // larger ones have left room.
  void share_larger(std::vector<std::uint32_t> buffers) {
    std::stable_sort(buffers.begin(), buffers.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return size(a) > size(b); });
    std::vector<std::map<std::uint64_t, std::uint32_t>>
        users;  // by slot: buffers, by when they begin
    const auto base = static_cast<std::uint32_t>(program_.slots.size());
    for (const std::uint32_t b : buffers) {
      const auto has_room = [&](const auto& slot) {
        const auto next = slot.lower_bound(begin(b));
        return (next == slot.end() || end(b) <= next->first) &&
               (next == slot.begin() || end(std::prev(next)->second) <= begin(b));
      };
      const auto slot = std::find_if(users.begin(), users.end(), has_room) - users.begin();
      if (slot == std::ssize(users)) {
        add_slot(b);
        users.emplace_back();
      }
      program_.buffers[b].slot = base + static_cast<std::uint32_t>(slot);
      users[static_cast<std::size_t>(slot)].emplace(begin(b), b);
    }
    for (const auto& slot : users) {
      for (auto user = std::next(slot.begin()); user != slot.end(); ++user) {
        take_slot(user->second, std::prev(user)->second);
      }
    }
  }

  void add_slot(std::uint32_t b) {
    program_.buffers[b].slot = static_cast<std::uint32_t>(program_.slots.size());
    program_.slots.push_back({program_.buffers[b].bytes});
  }
  void take_slot(std::uint32_t b, std::uint32_t before) {
    program_.buffers[b].slot = program_.buffers[before].slot;
    out_.after.emplace_back(index(program_.buffers[b].alloc), index(program_.buffers[before].free));
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

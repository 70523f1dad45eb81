#include "core/lower/lifetimes.h"

#include <algorithm>
#include <numeric>

#include "core/lower/arena.h"
#include "core/plan/occupants.h"

namespace piper {
namespace {

constexpr std::uint32_t kFreeSlack =
    1;  // compute tasks after the first that could free what was sent
constexpr std::uint32_t kNoTask = 0xffffffff;

class Chooser {
 public:
  Chooser(const Plan& plan, Program& program, const TaskTimes& times,
          const std::vector<std::uint32_t>& timeline)
      : plan_(plan), program_(program), times_(times), timeline_(timeline) {}

  Lifetimes run() {
    find_users();
    choose_frees();
    fill_arena();
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
      if (buffer.kind == Buffer::Kind::full_gradient) {
        buffer.free = TaskId{users_[first_user_[b]]};  // its reduce-scatter, the last that uses it
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
        out_.after.pairs.emplace_back(task, users_[u]);
      }
    }
  }

  // Offsets for received values, gathered parameters and full gradients: sizes that are known, and
  // memory that more than one stream uses.
  void fill_arena() {
    std::vector<BufferId> buffers;
    std::vector<ArenaBlock> blocks;
    for (const std::uint32_t t : timeline_) {
      for (const BufferId id : program_.writes_of(program_.tasks[t])) {
        const Buffer& buffer = program_.buffer(id);
        if (!buffer.persistent() && index(buffer.alloc) == t && belongs_in_arena(buffer)) {
          buffers.push_back(id);
          blocks.push_back({bytes_of(plan_, program_, 0, buffer), times_.start[t],
                            times_.end[index(buffer.free)]});
        }
      }
    }
    program_.arena_bytes = pack_arena(blocks);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      program_.buffers[index(buffers[i])].offset = blocks[i].offset;
    }
    order_reuse(buffers, blocks);
  }

  bool belongs_in_arena(const Buffer& buffer) const {
    return buffer.kind == Buffer::Kind::gathered || buffer.kind == Buffer::Kind::full_gradient ||
           traits(program_.task(buffer.alloc).op).direction == Direction::in;
  }

  // Who is given bytes of the arena comes after the free of who had them, in this period, or in
  // the one before.
  void order_reuse(const std::vector<BufferId>& buffers, const std::vector<ArenaBlock>& blocks) {
    Occupants occupants;
    for (Predecessors* const after : {&out_.after, &out_.after_previous}) {
      std::vector<bool> came(program_.buffers.size(), false);
      for (std::size_t i = 0; i < buffers.size(); ++i) {
        const Buffer& buffer = program_.buffer(buffers[i]);
        const auto follow = [&](BufferId before) {
          if (came[index(before)] == (after == &out_.after)) {
            after->pairs.emplace_back(index(buffer.alloc), index(program_.buffer(before).free));
          }
        };
        occupants.take(buffer.offset, buffer.offset + blocks[i].bytes, buffers[i], follow);
        came[index(buffers[i])] = true;
      }
    }
  }

  // Frees and further predecessors, in the order of tasks.
  void index_by_task() {
    out_.frees_first.assign(tasks() + 1, 0);
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
    for (Predecessors* const after : {&out_.after, &out_.after_previous}) {
      std::sort(after->pairs.begin(), after->pairs.end());
      after->first.assign(tasks() + 1, 0);
      for (const auto& pair : after->pairs) {
        ++after->first[pair.first + 1];
      }
      std::partial_sum(after->first.begin(), after->first.end(), after->first.begin());
    }
  }

  const Plan& plan_;
  Program& program_;
  const TaskTimes& times_;
  const std::vector<std::uint32_t>& timeline_;
  std::vector<std::uint32_t> last_compute_, first_user_, users_;  // by buffer
  Lifetimes out_;
};

}  // namespace

Lifetimes choose_lifetimes(const Plan& plan, Program& program, const TaskTimes& times,
                           const std::vector<std::uint32_t>& timeline) {
  return Chooser(plan, program, times, timeline).run();
}

}  // namespace piper

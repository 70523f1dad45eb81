// What happens before what on the ranks of one program: the order of each stream, and the waits
// between streams. Nothing else orders two tasks of a rank, and waits never cross ranks, so each
// program is looked at alone.
//
// A vector clock a task: for each stream, how many of its tasks have finished when the task starts.
// A second row says the same of the period before. Flat arrays that are used again for the next
// program; O(tasks x streams).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/plan/plan.h"

namespace piper {

class LocalOrder {
 public:
  // True unless tasks wait for each other in a circle; then cycle() has them, each waiting for the
  // next.
  bool build(const Program& program);

  // `a` ends before `b` starts, in one period.
  bool before(std::uint32_t a, std::uint32_t b) const { return clock(b)[stream_[a]] > position(a); }
  // `a` ends in one period before `b` starts in the next.
  bool before_next(std::uint32_t a, std::uint32_t b) const {
    return previous(b)[stream_[a]] > position(a);
  }

  std::uint32_t streams() const { return lanes_; }
  std::uint32_t stream(std::uint32_t task) const { return stream_[task]; }
  std::uint32_t position(std::uint32_t task) const { return task - begin_[stream_[task]]; }
  std::uint32_t begin(std::uint32_t stream) const { return begin_[stream]; }
  std::uint32_t count(std::uint32_t stream) const { return begin_[stream + 1] - begin_[stream]; }
  std::span<const std::uint32_t> clock(std::uint32_t task) const {
    return {clock_.data() + std::size_t{task} * lanes_, lanes_};
  }
  std::span<const std::uint32_t> previous(std::uint32_t task) const {
    return {previous_.data() + std::size_t{task} * lanes_, lanes_};
  }
  // All tasks, each after everything that happens before it; the same for the same program.
  std::span<const std::uint32_t> sequence() const { return sequence_; }
  std::span<const std::uint32_t> cycle() const { return cycle_; }

 private:
  bool run(const Program& program);
  void find_cycle(const Program& program);
  void look_back(const Program& program);

  std::uint32_t lanes_ = 0;
  std::vector<std::uint32_t> begin_;     // first task of each stream, and the number of tasks
  std::vector<std::uint32_t> stream_;    // by task
  std::vector<std::uint32_t> head_;      // by stream: its next task
  std::vector<std::uint32_t> waiting_;   // by task: the first stream that waits for it
  std::vector<std::uint32_t> next_;      // by stream: the next one that waits for the same task
  std::vector<std::uint32_t> runnable_;  // streams
  std::vector<std::uint32_t> clock_, previous_, sequence_, cycle_;
};

// Who touches each buffer, in the order of LocalOrder::sequence(); reads of a task before its
// writes.
class AccessIndex {
 public:
  struct Access {
    std::uint32_t task : 31;
    std::uint32_t writes : 1;
  };

  void build(const Program& program, const LocalOrder& order);
  std::span<const Access> of(std::uint32_t buffer) const {
    return {accesses_.data() + begin_[buffer], begin_[buffer + 1] - begin_[buffer]};
  }

 private:
  std::vector<std::uint32_t> begin_;
  std::vector<Access> accesses_;
};

}  // namespace piper

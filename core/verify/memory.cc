// The window bound: bytes that can be live on a rank at most, whatever the timing.
//
// A task allocates when it starts and frees when it ends. The compute stream is the reference: in
// each of its states (so many tasks ended, one running or none), every other stream can only be in
// a window of states: not before what the last started computation waited for, not after what needs
// a computation that has not ended. The bound of a state is the live bytes of compute and, for each
// other stream, the largest in its window; windows only move forward, so a queue of candidates
// finds it in O(tasks x streams). Exact where every wait has compute at one end. Two periods, since
// the streams of one may still be behind when the next begins.
#include "core/verify/memory.h"

#include <algorithm>
#include <vector>

#include "core/plan/chunk_memory.h"
#include "core/plan/plan.h"
#include "core/verify/order.h"

namespace piper {
namespace {

// Live bytes of one stream after each of its states, over two periods: 2k = k tasks have ended, 2k
// + 1 = task k runs.
using Levels = std::vector<std::int64_t>;

class Memory {
 public:
  Memory(const Plan& plan, const ModelGraph& model, const Program& program,
         std::uint32_t coordinate)
      : plan_(plan), model_(model), program_(program), coordinate_(coordinate) {
    PIPER_CHECK(order_.build(program), "a plan that the verifier has not seen");
  }

  std::int64_t bytes() {
    const std::vector<std::int64_t> bound = bounds();
    return persistent_ + (bound.empty() ? 0 : *std::max_element(bound.begin(), bound.end()));
  }

  Peak peak() {
    const std::vector<std::int64_t> bound = bounds();
    Peak peak;
    if (!bound.empty()) {
      const auto at = std::max_element(bound.begin(), bound.end());
      const auto state = static_cast<std::uint32_t>(at - bound.begin());
      peak.bytes = *at;
      const std::uint32_t reference = choose_reference();
      if (state > 0) {
        peak.task = TaskId{order_.begin(reference) + (state - 1) / 2 % order_.count(reference)};
      }
      for (std::uint32_t s = 0; s < order_.streams(); ++s) {
        add_kinds(peak, s, s == reference ? state : highest_state(state, reference, s));
      }
    }
    peak.bytes += persistent_;
    add_arena(peak);
    for (const Buffer& buffer : program_.buffers) {
      if (buffer.persistent()) {
        of_kind(peak, kind_of(buffer.kind)) += bytes_of(buffer);
      }
    }
    return peak;
  }

 private:
  std::vector<std::int64_t> bounds() {
    measure_tasks();
    if (order_.streams() == 0) {
      return {};
    }
    const std::uint32_t reference = choose_reference();
    std::vector<std::int64_t> bound = levels(reference);
    for (std::uint32_t s = 0; s < order_.streams(); ++s) {
      if (s != reference) {
        add_windows(bound, reference, s);
      }
    }
    return bound;
  }

  static MemoryKind kind_of(Buffer::Kind kind) {
    switch (kind) {
      case Buffer::Kind::parameter:
        return MemoryKind::parameter;
      case Buffer::Kind::gathered:
        return MemoryKind::gathered;
      case Buffer::Kind::parameter_gradient:
      case Buffer::Kind::full_gradient:
        return MemoryKind::gradient;
      case Buffer::Kind::optimizer:
        return MemoryKind::optimizer;
      case Buffer::Kind::loss_sum:
      case Buffer::Kind::token_count:
      case Buffer::Kind::grad_norm:
        return MemoryKind::workspace;
      case Buffer::Kind::input:
      case Buffer::Kind::activation:
      case Buffer::Kind::gradient:
      case Buffer::Kind::saved:
      case Buffer::Kind::routed:
      case Buffer::Kind::routed_gradient:
        break;
    }
    return MemoryKind::activation;
  }
  static std::int64_t& of_kind(Peak& peak, MemoryKind kind) {
    return peak.of_kind[static_cast<std::size_t>(kind)];
  }

  // The bytes of the arena are for what it holds when it is fullest, if tasks run one after
  // another; the rest is for what is received.
  void add_arena(Peak& peak) const {
    std::vector<std::vector<const Buffer*>> allocated(program_.tasks.size());
    for (const Buffer& buffer : program_.buffers) {
      if (buffer.in_arena()) {
        allocated[index(buffer.alloc)].push_back(&buffer);
      }
    }
    Held held, fullest;
    for (const std::uint32_t t : order_.sequence()) {
      for (const Buffer* const buffer : allocated[t]) {
        held.add(kind_of(buffer->kind), bytes_of(*buffer));
      }
      fullest = held.bytes > fullest.bytes ? held : fullest;
      for (const BufferId id : program_.frees_of(program_.tasks[t])) {
        if (program_.buffer(id).in_arena()) {
          held.add(kind_of(program_.buffer(id).kind), -bytes_of(program_.buffer(id)));
        }
      }
    }
    of_kind(peak, MemoryKind::gathered) += fullest.gathered;
    of_kind(peak, MemoryKind::gradient) += fullest.gradient;
    of_kind(peak, MemoryKind::communication) +=
        program_.arena_bytes - fullest.gathered - fullest.gradient;
  }

  struct Held {
    std::int64_t bytes = 0, gathered = 0, gradient = 0;

    void add(MemoryKind kind, std::int64_t more) {
      bytes += more;
      gathered += kind == MemoryKind::gathered ? more : 0;
      gradient += kind == MemoryKind::gradient ? more : 0;
    }
  };

  // The highest level of stream s while the reference is in `state`; of several the first.
  std::uint32_t highest_state(std::uint32_t state, std::uint32_t reference, std::uint32_t s) const {
    const Levels level = levels(s);
    const std::uint32_t tasks = 2 * order_.count(s), started = (state + 1) / 2;
    std::uint32_t may_end = 0;
    while (may_end < tasks && ended(s, may_end, reference) <= state / 2) {
      ++may_end;
    }
    const std::uint32_t low = started == 0 ? 0 : 2 * ended(reference, started - 1, s);
    return static_cast<std::uint32_t>(
        std::max_element(level.begin() + low, level.begin() + 2 * may_end + 1) - level.begin());
  }

  // What stream s has allocated and not freed in a state, by kind.
  void add_kinds(Peak& peak, std::uint32_t s, std::uint32_t state) const {
    const std::uint32_t count = order_.count(s), started = (state + 1) / 2, over = state / 2;
    const auto times = [&](TaskId task, std::uint32_t events) {
      const std::uint32_t position = order_.position(index(task));
      return static_cast<std::int64_t>(events / count) + (position < events % count ? 1 : 0);
    };
    for (const Buffer& buffer : program_.buffers) {
      if (buffer.persistent() || buffer.in_arena()) {
        continue;
      }
      std::int64_t live = 0;
      if (order_.stream(index(buffer.alloc)) == s) {
        live += times(buffer.alloc, started);
      }
      if (order_.stream(index(buffer.free)) == s) {
        live -= times(buffer.free, over);
      }
      of_kind(peak, kind_of(buffer.kind)) += live * bytes_of(buffer);
    }
    for (std::uint32_t t = order_.begin(s); t < order_.begin(s) + count; ++t) {
      of_kind(peak, MemoryKind::activation) += times(TaskId{t}, over) * computed_[t].after;
    }
    if (started > over) {
      add_running(peak, computed_[order_.begin(s) + over % count].running);
    }
  }

  // What a computation needs for a while, or does not hold yet of its values.
  static void add_running(Peak& peak, std::int64_t bytes) {
    of_kind(peak, bytes > 0 ? MemoryKind::workspace : MemoryKind::activation) += bytes;
  }

  // Of a chain: its size does not depend on rows.
  std::int64_t bytes_of(const Buffer& buffer) const {
    return valid(buffer.bucket) ? buffer.bytes.fixed : buffer.bytes.at(rows_[buffer.microbatch]);
  }

  void measure_tasks() {
    allocs_.assign(program_.tasks.size(), 0);
    frees_.assign(program_.tasks.size(), 0);
    for (std::uint32_t m = 0; m < plan_.microbatches; ++m) {
      rows_.push_back(rows_of(plan_, program_, coordinate_, m).count);
    }
    persistent_ += program_.arena_bytes;
    for (const Buffer& buffer : program_.buffers) {
      const std::int64_t bytes = bytes_of(buffer);
      if (buffer.persistent()) {
        persistent_ += bytes;
      } else if (!buffer.in_arena()) {
        allocs_[index(buffer.alloc)] += bytes;
        frees_[index(buffer.free)] += bytes;
      }
    }
    ChunkMemory chunks(plan_, model_);
    for (std::size_t t = 0; t < program_.tasks.size(); ++t) {
      const Task& task = program_.tasks[t];
      computed_.push_back(chunks.of(program_, task, coordinate_));
      frees_[t] -= computed_[t].after;
    }
  }

  std::uint32_t choose_reference() const {
    std::uint32_t best = 0;
    for (std::uint32_t s = 0; s < order_.streams(); ++s) {
      if (program_.streams[s].kind == Stream::Kind::compute) {
        return s;
      }
      if (order_.count(s) > order_.count(best)) {
        best = s;
      }
    }
    return best;
  }

  Levels levels(std::uint32_t s) const {
    Levels levels{0};
    std::int64_t live = 0;
    for (int period = 0; period < 2; ++period) {
      for (std::uint32_t t = order_.begin(s); t < order_.begin(s) + order_.count(s); ++t) {
        live += allocs_[t];
        levels.push_back(live + computed_[t].running);
        live -= frees_[t];
        levels.push_back(live);
      }
    }
    return levels;
  }

  // How many tasks of stream s, over both periods, have ended when task `position` of `stream`
  // starts.
  std::uint32_t ended(std::uint32_t stream, std::uint32_t position, std::uint32_t s) const {
    const std::uint32_t count = order_.count(stream);
    const std::uint32_t task = order_.begin(stream) + position % count;
    const std::uint32_t now = order_.clock(task)[s];
    if (position < count) {
      return now;
    }
    return now > 0 ? order_.count(s) + now : order_.previous(task)[s];
  }

  void add_windows(std::vector<std::int64_t>& bound, std::uint32_t reference,
                   std::uint32_t s) const {
    const Levels level = levels(s);
    const std::uint32_t tasks = 2 * order_.count(s);
    std::vector<std::uint32_t> candidates;  // states whose levels fall, from `first` on
    std::size_t first = 0;
    std::uint32_t may_end = 0;  // tasks of s that may have ended
    std::uint32_t seen = 0;     // states of s that were candidates
    for (std::uint32_t state = 0; state < bound.size(); ++state) {
      const std::uint32_t compute_ended = state / 2;
      while (may_end < tasks && ended(s, may_end, reference) <= compute_ended) {
        ++may_end;
      }
      for (; seen <= 2 * may_end; ++seen) {
        while (candidates.size() > first && level[candidates.back()] <= level[seen]) {
          candidates.pop_back();
        }
        candidates.push_back(seen);
      }
      const std::uint32_t started = (state + 1) / 2;
      const std::uint32_t low = started == 0 ? 0 : 2 * ended(reference, started - 1, s);
      while (candidates[first] < low) {
        ++first;
      }
      bound[state] += level[candidates[first]];
    }
  }

  const Plan& plan_;
  const ModelGraph& model_;
  const Program& program_;
  std::uint32_t coordinate_;
  LocalOrder order_;
  std::vector<std::int64_t> rows_;            // by micro-batch
  std::vector<std::int64_t> allocs_, frees_;  // by task
  std::vector<TaskMemory> computed_;          // by task
  std::int64_t persistent_ = 0;
};

}  // namespace

std::int64_t peak_bytes(const Plan& plan, const ModelGraph& model, std::uint32_t program,
                        std::uint32_t coordinate) {
  return Memory(plan, model, plan.programs[program], coordinate).bytes();
}

Peak memory_peak(const Plan& plan, const ModelGraph& model, std::uint32_t program,
                 std::uint32_t coordinate) {
  return Memory(plan, model, plan.programs[program], coordinate).peak();
}

}  // namespace piper

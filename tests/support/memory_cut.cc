#include "tests/support/memory_cut.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "core/plan/chunk_memory.h"

namespace piper::test {
namespace {

// Dinic's algorithm.
class Flow {
 public:
  explicit Flow(std::uint32_t nodes) : arcs_(nodes) {}

  void add(std::uint32_t from, std::uint32_t to, std::int64_t capacity) {
    arcs_[from].push_back({to, static_cast<std::uint32_t>(arcs_[to].size()), capacity});
    arcs_[to].push_back({from, static_cast<std::uint32_t>(arcs_[from].size() - 1), 0});
  }

  std::int64_t run(std::uint32_t source, std::uint32_t sink) {
    std::int64_t total = 0;
    while (find_levels(source, sink)) {
      next_.assign(arcs_.size(), 0);
      while (const std::int64_t pushed = push(source, sink, kMost)) {
        total += pushed;
      }
    }
    return total;
  }

  static constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 4;

 private:
  struct Arc {
    std::uint32_t to, back;
    std::int64_t left;
  };

  bool find_levels(std::uint32_t source, std::uint32_t sink) {
    level_.assign(arcs_.size(), -1);
    level_[source] = 0;
    std::queue<std::uint32_t> open({source});
    for (; !open.empty(); open.pop()) {
      for (const Arc& arc : arcs_[open.front()]) {
        if (arc.left > 0 && level_[arc.to] < 0) {
          level_[arc.to] = level_[open.front()] + 1;
          open.push(arc.to);
        }
      }
    }
    return level_[sink] >= 0;
  }

  std::int64_t push(std::uint32_t at, std::uint32_t sink, std::int64_t most) {
    if (at == sink) {
      return most;
    }
    for (std::size_t& i = next_[at]; i < arcs_[at].size(); ++i) {
      Arc& arc = arcs_[at][i];
      if (arc.left == 0 || level_[arc.to] != level_[at] + 1) {
        continue;
      }
      if (const std::int64_t pushed = push(arc.to, sink, std::min(most, arc.left))) {
        arc.left -= pushed;
        arcs_[arc.to][arc.back].left += pushed;
        return pushed;
      }
    }
    return 0;
  }

  std::vector<std::vector<Arc>> arcs_;
  std::vector<int> level_;
  std::vector<std::size_t> next_;
};

class Closure {
 public:
  explicit Closure(const Program& program)
      : program_(program), tasks_(static_cast<std::uint32_t>(program.tasks.size())) {}

  // By task: what its start adds and its end takes away.
  std::int64_t run(const std::vector<std::int64_t>& starts, const std::vector<std::int64_t>& ends) {
    const std::uint32_t events = 4 * tasks_, source = events, sink = events + 1;
    Flow flow(events + 2);
    std::int64_t all = 0;
    for (std::uint32_t period = 0; period < 2; ++period) {
      for (std::uint32_t t = 0; t < tasks_; ++t) {
        for (const auto& [event, gain] :
             {std::pair{start(t, period), starts[t]}, std::pair{end(t, period), -ends[t]}}) {
          if (gain > 0) {
            flow.add(source, event, gain);
            all += gain;
          } else if (gain < 0) {
            flow.add(event, sink, -gain);
          }
        }
        flow.add(end(t, period), start(t, period), Flow::kMost);
        for (const Wait& wait : program_.waits_of(program_.tasks[t])) {
          if (!wait.previous || period > 0) {
            flow.add(start(t, period), end(index(wait.task), period - (wait.previous ? 1 : 0)),
                     Flow::kMost);
          }
        }
      }
    }
    for (const Stream& stream : program_.streams) {
      const Range range = stream.tasks;
      for (std::uint32_t i = 1; i < 2 * range.count; ++i) {
        flow.add(start(range.begin + i % range.count, i / range.count),
                 end(range.begin + (i - 1) % range.count, (i - 1) / range.count), Flow::kMost);
      }
    }
    return all - flow.run(source, sink);
  }

 private:
  std::uint32_t start(std::uint32_t t, std::uint32_t period) const {
    return 2 * (t + period * tasks_);
  }
  std::uint32_t end(std::uint32_t t, std::uint32_t period) const { return start(t, period) + 1; }

  const Program& program_;
  std::uint32_t tasks_;
};

}  // namespace

MemoryCut cut_memory(const Plan& plan, const ModelGraph& model, std::uint32_t program_id,
                     std::uint32_t coordinate) {
  const Program& program = plan.programs[program_id];
  const auto rows = [&](std::uint32_t m) { return rows_of(plan, program, coordinate, m).count; };
  MemoryCut cut;
  std::int64_t kept = 0;
  std::vector<std::int64_t> starts(program.tasks.size(), 0), ends = starts;
  std::vector<std::int64_t> arena_starts = starts, arena_ends = starts;
  cut.arena = program.arena_bytes;
  for (const Buffer& buffer : program.buffers) {
    const std::int64_t bytes =
        valid(buffer.bucket) ? buffer.bytes.fixed : buffer.bytes.at(rows(buffer.microbatch));
    if (buffer.persistent()) {
      kept += bytes;
      continue;
    }
    if (buffer.in_arena()) {
      const std::int64_t rounded =
          (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
      arena_starts[index(buffer.alloc)] += rounded;
      arena_ends[index(buffer.free)] += rounded;
    } else {
      starts[index(buffer.alloc)] += bytes;
      ends[index(buffer.free)] += bytes;
    }
  }
  ChunkMemory chunks(plan, model);
  for (std::size_t t = 0; t < program.tasks.size(); ++t) {
    const Task& task = program.tasks[t];
    const TaskMemory memory = chunks.of(program, task, coordinate);
    starts[t] += memory.running;
    ends[t] += memory.running - memory.after;
  }
  Closure closure(program);
  cut.peak = kept + cut.arena + closure.run(starts, ends);
  cut.served = closure.run(arena_starts, arena_ends);
  for (std::size_t t = 0; t < program.tasks.size(); ++t) {
    starts[t] += arena_starts[t];
    ends[t] += arena_ends[t];
  }
  cut.peak_without_arena = kept + closure.run(starts, ends);
  return cut;
}

}  // namespace piper::test

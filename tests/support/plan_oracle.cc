#include "tests/support/plan_oracle.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "core/plan/chunk_memory.h"

namespace piper::test {
namespace {

using Kind = Buffer::Kind;
using Graph = std::vector<std::vector<std::uint32_t>>;  // successors

// Node `task` is the task in this period, node `tasks + task` the one in the next.
Graph local_graph(const Program& program) {
  const auto tasks = static_cast<std::uint32_t>(program.tasks.size());
  Graph graph(2 * tasks);
  for (const Stream& stream : program.streams) {
    const Range range = stream.tasks;
    for (std::uint32_t i = 1; i < 2 * range.count; ++i) {
      const auto node = [&](std::uint32_t at) {
        return range.begin + at % range.count + (at < range.count ? 0 : tasks);
      };
      graph[node(i - 1)].push_back(node(i));
    }
  }
  for (std::uint32_t t = 0; t < tasks; ++t) {
    for (const Wait& wait : program.waits_of(program.tasks[t])) {
      const std::uint32_t awaited = index(wait.task);
      if (wait.previous) {
        graph[awaited].push_back(tasks + t);
      } else {
        graph[awaited].push_back(t);
        graph[tasks + awaited].push_back(tasks + t);
      }
    }
  }
  return graph;
}

std::vector<std::vector<bool>> closure(const Graph& graph) {
  std::vector<std::vector<bool>> reaches(graph.size(), std::vector<bool>(graph.size()));
  for (std::uint32_t from = 0; from < graph.size(); ++from) {
    std::vector<std::uint32_t> open{from};
    while (!open.empty()) {
      const std::uint32_t at = open.back();
      open.pop_back();
      for (const std::uint32_t next : graph[at]) {
        if (!reaches[from][next]) {
          reaches[from][next] = true;
          open.push_back(next);
        }
      }
    }
  }
  return reaches;
}

// Groups of nodes that happen at once become one; true if the rest still has a cycle.
bool has_cycle(const Graph& graph, const std::vector<std::uint32_t>& group) {
  Graph merged(graph.size());
  for (std::uint32_t from = 0; from < graph.size(); ++from) {
    for (const std::uint32_t to : graph[from]) {
      merged[group[from]].push_back(group[to]);
    }
  }
  const std::vector<std::vector<bool>> reaches = closure(merged);
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    if (reaches[node][node]) {
      return true;
    }
  }
  return false;
}

bool makes_graph(Op op) {
  return op == Op::forward || op == Op::recompute;
}

// Must `a` have ended when `b` starts?
bool must_precede(Kind kind, bool gathers_in_place, const Task& a, bool a_writes, const Task& b,
                  bool b_writes) {
  const auto step = [&](Op op) {
    switch (op) {
      case Op::all_reduce:
        return 1;
      case Op::all_gather:
        return gathers_in_place ? 4 : 0;
      case Op::grad_norm:
        return 2;
      case Op::update:
      case Op::loss_report:
        return 3;
      default:
        return 0;
    }
  };
  switch (kind) {
    case Kind::saved:
      return (makes_graph(a.op) && !makes_graph(b.op)) ||
             (a.op == Op::backward_input && b.op == Op::backward_weight);
    case Kind::parameter:
    case Kind::parameter_gradient:
    case Kind::loss_sum:
      return step(a.op) < step(b.op);
    case Kind::optimizer:
      return false;
    case Kind::full_gradient:
      return a.op != Op::reduce_scatter && b.op == Op::reduce_scatter;
    default:
      return a_writes && !b_writes;
  }
}

std::string check_buffers(const Plan& plan, const Program& program,
                          const std::vector<std::vector<bool>>& reaches) {
  struct Use {
    std::uint32_t task;
    bool writes;
  };
  const auto tasks = static_cast<std::uint32_t>(program.tasks.size());
  std::vector<std::vector<Use>> uses(program.buffers.size());
  std::vector<std::vector<std::uint32_t>> frees(program.buffers.size());
  for (std::uint32_t t = 0; t < tasks; ++t) {
    for (const BufferId id : program.reads_of(program.tasks[t])) {
      uses[index(id)].push_back({t, false});
    }
    for (const BufferId id : program.writes_of(program.tasks[t])) {
      uses[index(id)].push_back({t, true});
    }
    for (const BufferId id : program.frees_of(program.tasks[t])) {
      frees[index(id)].push_back(t);
    }
  }
  for (std::uint32_t b = 0; b < program.buffers.size(); ++b) {
    const Buffer& buffer = program.buffers[b];
    const bool gathers_in_place =
        buffer.kind == Kind::parameter && std::any_of(uses[b].begin(), uses[b].end(), [&](Use use) {
          return use.writes && program.tasks[use.task].op == Op::all_gather;
        });
    for (const Use x : uses[b]) {
      for (const Use y : uses[b]) {
        if (x.task == y.task) {
          // In the next period it is another task.
          if (buffer.persistent() && (x.writes || y.writes) && !reaches[x.task][tasks + y.task]) {
            return "next period";
          }
          continue;
        }
        if (must_precede(buffer.kind, gathers_in_place, program.tasks[x.task], x.writes,
                         program.tasks[y.task], y.writes) &&
            !reaches[x.task][y.task]) {
          return "data";
        }
        if ((x.writes || y.writes) && !reaches[x.task][y.task] && !reaches[y.task][x.task]) {
          return "race";
        }
        if (buffer.persistent() && (x.writes || y.writes) && !reaches[x.task][tasks + y.task]) {
          return "next period";
        }
      }
    }
    if (buffer.persistent() ? !frees[b].empty()
                            : frees[b] != std::vector<std::uint32_t>{index(buffer.free)}) {
      return "frees";
    }
    for (const Use use : uses[b]) {
      if (!buffer.persistent() && use.task != index(buffer.free) &&
          !reaches[use.task][index(buffer.free)]) {
        return "freed early";
      }
    }
    if (!buffer.persistent() && !reaches[index(buffer.free)][tasks + index(buffer.alloc)]) {
      return "allocated again early";
    }
    if (!buffer.in_arena()) {
      continue;
    }
    const auto end = [&](const Buffer& own) {
      return own.offset + bytes_of(plan, program, 0, own);
    };
    if (buffer.offset < 0 || buffer.offset % kArenaAlignment != 0 ||
        end(buffer) > program.arena_bytes) {
      return "outside the arena";
    }
    for (std::uint32_t other = 0; other < program.buffers.size(); ++other) {
      const Buffer& second = program.buffers[other];
      if (!second.in_arena() || second.offset >= end(buffer) || buffer.offset >= end(second)) {
        continue;
      }
      if (!reaches[index(buffer.free)][tasks + index(second.alloc)]) {
        return "arena in the next period";
      }
      if (other != b && !reaches[index(buffer.free)][index(second.alloc)] &&
          !reaches[index(second.free)][index(buffer.alloc)]) {
        return "arena";
      }
    }
  }
  return "";
}

// What a message or a launch is, for comparing sequences.
using Identity = std::pair<std::uint64_t, std::uint64_t>;

std::string check_sequences(const Plan& plan) {
  for (std::uint32_t c = 0; c < plan.communicators.size(); ++c) {
    std::vector<std::vector<Identity>> sequences;
    for (const Program& program : plan.programs) {
      std::vector<Identity> sequence;
      for (const Task& task : program.tasks) {
        if (task.communicator != CommId{c}) {
          continue;
        }
        const std::uint32_t pair = std::min(index(task.node), index(task.peer));
        sequence.push_back(is_point_to_point(task.op)
                               ? Identity{pair, std::max(index(task.node), index(task.peer))}
                               : Identity{static_cast<std::uint64_t>(task.op), index(task.bucket)});
      }
      if (!sequence.empty()) {
        sequences.push_back(std::move(sequence));
      }
    }
    for (const std::vector<Identity>& sequence : sequences) {
      if (sequence != sequences.front()) {
        return "sequence";
      }
    }
  }
  return "";
}

}  // namespace

std::string find_fault(const Plan& plan) {
  if (std::string fault = check_sequences(plan); !fault.empty()) {
    return fault;
  }
  // All programs in one graph; messages and collectives are one step.
  Graph all;
  std::vector<std::uint32_t> group;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> first_of_group;
  for (const Program& program : plan.programs) {
    const auto tasks = static_cast<std::uint32_t>(program.tasks.size());
    const auto base = static_cast<std::uint32_t>(all.size());
    for (const std::vector<std::uint32_t>& successors : local_graph(program)) {
      all.emplace_back();
      for (const std::uint32_t next : successors) {
        all.back().push_back(base + next);
      }
    }
    std::vector<std::uint32_t> launches(plan.communicators.size());
    for (std::uint32_t node = 0; node < 2 * tasks; ++node) {
      const Task& task = program.tasks[node % tasks];
      group.push_back(base + node);
      if (!valid(task.communicator)) {
        continue;
      }
      const std::uint64_t period = node / tasks;
      const std::uint64_t number = is_point_to_point(task.op)
                                       ? std::min(index(task.node), index(task.peer))
                                       : launches[index(task.communicator)]++;
      const auto key = std::pair{std::uint64_t{index(task.communicator)},
                                 is_point_to_point(task.op) ? number * 2 + period : number};
      group.back() = first_of_group.try_emplace(key, base + node).first->second;
    }
  }
  if (has_cycle(all, group)) {
    return "deadlock";
  }
  for (const Program& program : plan.programs) {
    if (std::string fault = check_buffers(plan, program, closure(local_graph(program)));
        !fault.empty()) {
      return fault;
    }
  }
  return "";
}

namespace {

class StateSearch {
 public:
  StateSearch(const Plan& plan, const ModelGraph& model, const Program& program,
              std::uint32_t coordinate)
      : program_(program), tasks_(static_cast<std::uint32_t>(program.tasks.size())) {
    for (const Stream& stream : program.streams) {
      if (stream.tasks.count > 0) {
        streams_.push_back(stream.tasks);
      }
    }
    alloc_.assign(tasks_, 0);
    free_.assign(tasks_, 0);
    extra_.assign(tasks_, 0);
    const auto rows = [&](std::uint32_t m) { return rows_of(plan, program, coordinate, m).count; };
    base_ += program.arena_bytes;
    for (const Buffer& buffer : program.buffers) {
      const std::int64_t bytes =
          valid(buffer.bucket) ? buffer.bytes.fixed : buffer.bytes.at(rows(buffer.microbatch));
      if (buffer.persistent()) {
        base_ += bytes;
      } else if (!buffer.in_arena()) {
        alloc_[index(buffer.alloc)] += bytes;
        free_[index(buffer.free)] += bytes;
      }
    }
    ChunkMemory chunks(plan, model);
    for (std::uint32_t t = 0; t < tasks_; ++t) {
      const Task& task = program.tasks[t];
      const TaskMemory memory = chunks.of(program, task, coordinate);
      extra_[t] = memory.running;
      free_[t] -= memory.after;
    }
  }

  std::optional<std::int64_t> run() {
    constexpr std::uint64_t kMostStates = 40'000'000;
    std::uint64_t states = 1;
    for (const Range stream : streams_) {
      radix_.push_back(states);
      states *= 4 * stream.count + 1;
      if (states > kMostStates) {
        return std::nullopt;
      }
    }
    std::vector<bool> seen(states, false);
    std::vector<std::uint64_t> open{0};
    seen[0] = true;
    std::int64_t most = 0;
    while (!open.empty()) {
      const std::uint64_t state = open.back();
      open.pop_back();
      most = std::max(most, live(state));
      for (std::size_t s = 0; s < streams_.size(); ++s) {
        if (can_go_on(state, s) && !seen[state + radix_[s]]) {
          seen[state + radix_[s]] = true;
          open.push_back(state + radix_[s]);
        }
      }
    }
    return base_ + most;
  }

 private:
  // Of stream s: 2k = k tasks have ended, 2k + 1 = task k runs; over both periods.
  std::uint64_t at(std::uint64_t state, std::size_t s) const {
    return state / radix_[s] % (4 * std::uint64_t{streams_[s].count} + 1);
  }

  bool can_go_on(std::uint64_t state, std::size_t s) const {
    const std::uint64_t own = at(state, s);
    if (own == 4 * std::uint64_t{streams_[s].count}) {
      return false;
    }
    if (own % 2 == 1) {
      return true;
    }
    const std::uint64_t period = own / 2 / streams_[s].count;
    const auto task = static_cast<std::uint32_t>(streams_[s].begin + own / 2 % streams_[s].count);
    for (const Wait& wait : program_.waits_of(program_.tasks[task])) {
      if (wait.previous && period == 0) {
        continue;
      }
      std::size_t other = 0;
      while (index(wait.task) < streams_[other].begin ||
             index(wait.task) >= streams_[other].begin + streams_[other].count) {
        ++other;
      }
      const std::uint64_t needed = (period - (wait.previous ? 1 : 0)) * streams_[other].count +
                                   (index(wait.task) - streams_[other].begin) + 1;
      if (at(state, other) / 2 < needed) {
        return false;
      }
    }
    return true;
  }

  std::int64_t live(std::uint64_t state) const {
    std::int64_t bytes = 0;
    for (std::size_t s = 0; s < streams_.size(); ++s) {
      const std::uint64_t own = at(state, s);
      for (std::uint64_t i = 0; i < own; ++i) {
        const auto task = static_cast<std::uint32_t>(streams_[s].begin + i / 2 % streams_[s].count);
        bytes += i % 2 == 0 ? alloc_[task] : -free_[task];
      }
      if (own % 2 == 1) {
        bytes += extra_[streams_[s].begin + own / 2 % streams_[s].count];
      }
    }
    return bytes;
  }

  const Program& program_;
  std::uint32_t tasks_;
  std::vector<Range> streams_;
  std::vector<std::uint64_t> radix_;
  std::vector<std::int64_t> alloc_, free_, extra_;
  std::int64_t base_ = 0;
};

}  // namespace

std::optional<std::int64_t> most_live_bytes(const Plan& plan, const ModelGraph& model,
                                            std::uint32_t program, std::uint32_t coordinate) {
  return StateSearch(plan, model, plan.programs[program], coordinate).run();
}

}  // namespace piper::test

// plan.deadlock, and plan.collective_order across communicators.
//
// With sends that hold nothing, a message ends when both ends are there, and a collective when all
// members are. Each such group of tasks is one step, so the plan cannot hang at any timing exactly
// if the streams, waits and groups have no cycle. The plan is run as blocked streams: each stream
// is blocked on one thing, and a list through the streams says who is blocked on what; where
// nothing can run, the shortest way along blocks that comes back is the cycle to show.
//
// Ranks of one program do the same, so each program runs once. One period is enough: waits for the
// period before only ever point forward in time, so a cycle lies within one period.
#include <algorithm>
#include <string>

#include "core/plan/node_name.h"
#include "core/verify/rules.h"
#include "core/verify/strategy_note.h"

namespace piper {
namespace {

constexpr std::uint32_t kNobody = 0xffffffff;

class Rendezvous {
 public:
  // `pairs`: do messages wait for their peer? Collectives always wait for all members.
  Rendezvous(const Plan& plan, bool pairs) : plan_(plan) {
    number();
    group_collectives();
    if (pairs) {
      group_messages();
    }
  }

  bool run();
  // The fewest tasks that wait for each other in a circle: each blocked, with the task it waits
  // for.
  struct Block {
    TaskPlace blocked, awaited;
    bool by_group = false;  // the other end of a message, or another member; else a wait
  };
  std::vector<Block> cycle() const;

 private:
  void number();
  void group_collectives();
  void group_messages();
  void step(std::uint32_t stream);
  void finish(std::uint32_t task);
  std::vector<Block> blocks_of(std::uint32_t stream) const;
  std::uint32_t stream_of(TaskPlace at) const { return stream_[first_task_[at.program] + at.task]; }
  bool is_done(std::uint32_t task) const { return head_[stream_[task]] > task; }
  TaskPlace place(std::uint32_t task) const {
    const std::uint32_t program = program_[stream_[task]];
    return {program, task - first_task_[program]};
  }

  // Tasks and streams are numbered across programs.
  const Plan& plan_;
  std::vector<std::uint32_t> first_task_;      // by program
  std::vector<std::uint32_t> program_;         // by stream
  std::vector<std::uint32_t> begin_;           // by stream: its first task; then the number of all
  std::vector<std::uint32_t> stream_;          // by task
  std::vector<std::uint32_t> group_;           // by task: its group, or kNobody
  std::vector<std::uint32_t> next_member_;     // by task: the next of its group, in a ring
  std::vector<std::uint32_t> missing_;         // by group: members that are not there yet
  std::vector<std::uint32_t> head_;            // by stream: its next task
  std::vector<std::uint32_t> waiting_, next_;  // by task: a stream that waits for it; and the next
  std::vector<bool> is_there_;                 // by stream: its head waits for its group
  std::vector<std::uint32_t> runnable_;
};

void Rendezvous::number() {
  std::uint32_t next = 0;
  for (std::uint32_t p = 0; p < plan_.programs.size(); ++p) {
    first_task_.push_back(next);
    for (const Stream& stream : plan_.programs[p].streams) {
      begin_.push_back(next + stream.tasks.begin);
      program_.push_back(p);
    }
    next += static_cast<std::uint32_t>(plan_.programs[p].tasks.size());
  }
  begin_.push_back(next);
  stream_.resize(next);
  for (std::uint32_t s = 0; s + 1 < begin_.size(); ++s) {
    std::fill(stream_.begin() + begin_[s], stream_.begin() + begin_[s + 1], s);
  }
  group_.assign(next, kNobody);
  next_member_.assign(next, kNobody);
}

// Launch number i of a communicator is one step of all members; a member's launches are in the
// order of its tasks.
void Rendezvous::group_collectives() {
  std::vector<std::uint32_t> first_group(plan_.communicators.size(), kNobody);
  std::vector<std::uint32_t> launch(plan_.communicators.size());
  std::vector<std::uint32_t> last_member;  // by group
  for (std::uint32_t p = 0; p < plan_.programs.size(); ++p) {
    std::fill(launch.begin(), launch.end(), 0);
    const std::vector<Task>& tasks = plan_.programs[p].tasks;
    // Groups of one communicator are consecutive: its first member knows how many there are.
    for (const Task& task : tasks) {
      if (valid(task.communicator) && !is_point_to_point(task.op)) {
        ++launch[index(task.communicator)];
      }
    }
    for (std::uint32_t c = 0; c < launch.size(); ++c) {
      if (launch[c] > 0 && first_group[c] == kNobody) {
        first_group[c] = static_cast<std::uint32_t>(missing_.size());
        missing_.resize(missing_.size() + launch[c], 0);
        last_member.resize(missing_.size(), kNobody);
      }
    }
    std::fill(launch.begin(), launch.end(), 0);
    for (std::uint32_t t = 0; t < tasks.size(); ++t) {
      if (!valid(tasks[t].communicator) || is_point_to_point(tasks[t].op)) {
        continue;
      }
      const std::uint32_t c = index(tasks[t].communicator);
      const std::uint32_t group = first_group[c] + launch[c]++;
      const std::uint32_t id = first_task_[p] + t;
      group_[id] = group;
      ++missing_[group];
      const std::uint32_t last = last_member[group];
      next_member_[id] = last == kNobody ? id : next_member_[last];
      if (last != kNobody) {
        next_member_[last] = id;
      }
      last_member[group] = id;
    }
  }
}

void Rendezvous::group_messages() {
  std::vector<std::uint32_t> send_of(plan_.origin_of_node.size(), kNobody);
  for (std::uint32_t p = 0; p < plan_.programs.size(); ++p) {
    for (std::uint32_t t = 0; t < plan_.programs[p].tasks.size(); ++t) {
      const Task& task = plan_.programs[p].tasks[t];
      if (task.op == Op::send) {
        send_of[index(task.node)] = first_task_[p] + t;
      }
    }
  }
  for (std::uint32_t p = 0; p < plan_.programs.size(); ++p) {
    for (std::uint32_t t = 0; t < plan_.programs[p].tasks.size(); ++t) {
      const Task& task = plan_.programs[p].tasks[t];
      if (task.op == Op::recv) {
        const std::uint32_t recv = first_task_[p] + t, send = send_of[index(task.peer)];
        group_[recv] = group_[send] = static_cast<std::uint32_t>(missing_.size());
        next_member_[recv] = send;
        next_member_[send] = recv;
        missing_.push_back(2);
      }
    }
  }
}

bool Rendezvous::run() {
  const auto streams = static_cast<std::uint32_t>(program_.size());
  head_.assign(begin_.begin(), begin_.end() - 1);
  waiting_.assign(stream_.size(), kNobody);
  next_.assign(streams, kNobody);
  is_there_.assign(streams, false);
  for (std::uint32_t s = streams; s > 0; --s) {
    runnable_.push_back(s - 1);
  }
  while (!runnable_.empty()) {
    const std::uint32_t s = runnable_.back();
    runnable_.pop_back();
    step(s);
  }
  return std::equal(head_.begin(), head_.end(), begin_.begin() + 1);
}

// Runs a stream until it is at its end or blocked.
void Rendezvous::step(std::uint32_t s) {
  const Program& program = plan_.programs[program_[s]];
  const std::uint32_t first = first_task_[program_[s]];
  while (head_[s] < begin_[s + 1] && !is_there_[s]) {
    const std::uint32_t t = head_[s];
    for (const Wait& wait : program.waits_of(program.tasks[t - first])) {
      const std::uint32_t awaited = first + index(wait.task);
      if (!wait.previous && !is_done(awaited)) {
        next_[s] = waiting_[awaited];
        waiting_[awaited] = s;
        return;
      }
    }
    const std::uint32_t group = group_[t];
    if (group == kNobody) {
      finish(t);
      continue;
    }
    is_there_[s] = true;
    if (--missing_[group] > 0) {
      return;
    }
    std::uint32_t member = t;
    do {
      is_there_[stream_[member]] = false;
      finish(member);
      if (stream_[member] != s) {
        runnable_.push_back(stream_[member]);
      }
      member = next_member_[member];
    } while (member != t);
  }
}

void Rendezvous::finish(std::uint32_t task) {
  ++head_[stream_[task]];
  for (std::uint32_t woken = waiting_[task]; woken != kNobody; woken = next_[woken]) {
    runnable_.push_back(woken);
  }
}

// All that a blocked stream's next task waits for.
std::vector<Rendezvous::Block> Rendezvous::blocks_of(std::uint32_t s) const {
  std::vector<Block> blocks;
  const std::uint32_t t = head_[s];
  const TaskPlace at = place(t);
  const Program& program = plan_.programs[at.program];
  for (const Wait& wait : program.waits_of(program.tasks[at.task])) {
    const std::uint32_t awaited = first_task_[at.program] + index(wait.task);
    if (!wait.previous && !is_done(awaited)) {
      blocks.push_back({at, place(awaited), false});
    }
  }
  if (!blocks.empty()) {
    return blocks;
  }
  for (std::uint32_t member = next_member_[t]; member != t; member = next_member_[member]) {
    if (!is_there_[stream_[member]] || head_[stream_[member]] != member) {
      blocks.push_back({at, place(member), true});
    }
  }
  return blocks;
}

std::vector<Rendezvous::Block> Rendezvous::cycle() const {
  const auto streams = static_cast<std::uint32_t>(program_.size());
  std::vector<Block> best, by(streams);
  std::vector<std::uint32_t> from(streams);
  for (std::uint32_t start = 0; start < streams; ++start) {
    if (head_[start] == begin_[start + 1]) {
      continue;
    }
    std::vector<std::uint32_t> length(streams, kNobody), queue{start};
    length[start] = 0;
    bool is_back = false;
    for (std::size_t i = 0; i < queue.size() && !is_back; ++i) {
      const std::uint32_t s = queue[i];
      if (!best.empty() && length[s] + 1 >= best.size()) {
        break;
      }
      for (const Block& block : blocks_of(s)) {
        const std::uint32_t next = stream_of(block.awaited);
        if (next == start || length[next] == kNobody) {
          by[next] = block;
          from[next] = s;
        }
        if (next == start) {
          is_back = true;
          break;
        }
        if (length[next] == kNobody) {
          length[next] = length[s] + 1;
          queue.push_back(next);
        }
      }
    }
    if (is_back) {
      best.clear();
      std::uint32_t s = start;
      do {
        best.push_back(by[s]);
        s = from[s];
      } while (s != start);
      std::reverse(best.begin(), best.end());
    }
  }
  return best;
}

}  // namespace

void check_rendezvous(Report& report) {
  Rendezvous all(report.plan, true);
  if (all.run()) {
    return;
  }
  // Would the collectives alone be stuck? Then no global order has them all.
  Rendezvous collectives(report.plan, false);
  const bool has_order = collectives.run();
  auto cycle = (has_order ? all : collectives).cycle();
  // Begins with a task that somebody has said something of.
  const auto first = std::find_if(cycle.begin(), cycle.end(), [&](const Rendezvous::Block& block) {
    return report.where(block.blocked).known();
  });
  if (first != cycle.end()) {
    std::rotate(cycle.begin(), first, cycle.end());
  }
  Diagnostic diagnostic =
      error(has_order ? "plan.deadlock" : "plan.collective_order",
            std::to_string(cycle.size()) +
                (has_order ? " tasks wait for each other in a circle when sends hold nothing"
                           : " tasks wait for each other in a circle: collectives have no one order"
                             " on all ranks"),
            report.where(cycle[0].blocked));
  const NodeNames names(report.plan, report.model);
  const auto name = [&](TaskPlace at) {
    return names.of(report.plan, at.program, report.plan.programs[at.program].tasks[at.task]);
  };
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    const TaskPlace next = cycle[(i + 1) % cycle.size()].blocked;
    const TaskPlace awaited = cycle[i].awaited;
    const Op op = report.plan.programs[awaited.program].tasks[awaited.task].op;
    const char* const needs = !cycle[i].by_group ? " waits for "
                              : op == Op::recv   ? " needs its receive, "
                              : op == Op::send   ? " needs its send, "
                                                 : " needs the other member, ";
    diagnostic.note(name(cycle[i].blocked) + needs + name(awaited) +
                    (next.task == awaited.task && next.program == awaited.program
                         ? ""
                         : ", which comes after " + name(next) + " on its stream"));
  }
  note_strategy(diagnostic, report.plan, cycle[0].blocked);
  report.add(std::move(diagnostic));
}

}  // namespace piper

#include "core/simulate/analysis.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/plan/chunk_memory.h"
#include "core/verify/memory.h"

namespace piper {
namespace {

class Analyst {
 public:
  Analyst(const Plan& plan, const ModelGraph& model, const Simulation& run)
      : plan_(plan), model_(model), run_(run) {}

  Analysis analyse() {
    Analysis out;
    out.makespan = run_.makespan;
    double busy = 0, all = 0;
    for (std::uint32_t p = 0; p < plan_.programs.size(); ++p) {
      out.programs.push_back(report(p));
      const double ranks = static_cast<double>(plan_.programs[p].ranks.size());
      busy += ranks * static_cast<double>(out.programs.back().busy);
      all += ranks * static_cast<double>(run_.makespan);
    }
    out.bubble = all > 0 ? 1 - busy / all : 0;
    out.critical_path = critical_path();
    return out;
  }

 private:
  const Task& task(const TaskOf& at) const { return plan_.programs[at.program].task(at.task); }
  const TimeSpan& span(const TaskOf& at) const { return run_.times[at.program][index(at.task)]; }
  TaskOf cause(const TaskOf& at) const {
    const Simulation::Cause& cause = run_.causes[at.program][index(at.task)];
    return {cause.program, cause.task};
  }
  ProgramReport report(std::uint32_t p) const {
    const Program& program = plan_.programs[p];
    ProgramReport out;
    std::uint64_t free = 0;
    for (const Stream& stream : program.streams) {
      if (stream.kind != Stream::Kind::compute) {
        continue;
      }
      for (std::uint32_t t = stream.tasks.begin; t < stream.tasks.begin + stream.tasks.count; ++t) {
        if (!computes(program.tasks[t].op)) {
          continue;
        }
        const TimeSpan& own = run_.times[p][t];
        if (own.begin > free) {
          out.gaps.push_back(gap(free, {p, TaskId{t}}));
        }
        out.busy += own.end - own.begin;
        free = own.end;
      }
    }
    if (free < run_.makespan) {
      out.gaps.push_back({free, run_.makespan, none<TaskId>(), 0, {}});
    }
    for (const Gap& gap : out.gaps) {
      out.exposed += gap.exposed;
    }
    out.bubble = run_.makespan > 0
                     ? 1 - static_cast<double>(out.busy) / static_cast<double>(run_.makespan)
                     : 0;
    out.peak_bytes = peak(p);
    out.bound_bytes = peak_bytes(plan_, model_, p, 0);
    return out;
  }

  // Back along what held `next` up, as far as the gap goes.
  Gap gap(std::uint64_t begin, const TaskOf& next) const {
    Gap gap{begin, span(next).begin, next.task, 0, {}};
    bool found = false;  // the computation to blame
    for (TaskOf at = cause(next); valid(at.task) && span(at).end > begin; at = cause(at)) {
      if (is_communication(task(at).op)) {
        gap.exposed += span(at).end - std::max(begin, span(at).begin);
      }
      if (!found && (computes(task(at).op) || !valid(gap.blame.task))) {
        gap.blame = at;
        found = computes(task(at).op);
      }
    }
    return gap;
  }

  std::vector<TaskOf> critical_path() const {
    TaskOf last;
    std::uint64_t latest = 0;
    for (std::uint32_t p = 0; p < plan_.programs.size(); ++p) {
      for (std::uint32_t t = 0; t < plan_.programs[p].tasks.size(); ++t) {
        if (const TimeSpan& own = run_.times[p][t]; own.end > latest) {
          latest = own.end;
          last = {p, TaskId{t}};
        }
      }
    }
    std::vector<TaskOf> path;
    for (TaskOf at = last; valid(at.task); at = cause(at)) {
      if (span(at).end > span(at).begin) {
        path.push_back(at);
      }
    }
    std::reverse(path.begin(), path.end());
    return path;
  }

  // Live bytes over this run. What ends at a moment is gone before what begins then.
  std::int64_t peak(std::uint32_t p) const {
    const Program& program = plan_.programs[p];
    struct Event {
      std::uint64_t time;
      std::int64_t bytes;
    };
    std::vector<Event> events;
    std::int64_t live = program.arena_bytes;
    for (const Buffer& buffer : program.buffers) {
      const std::int64_t bytes = bytes_of(plan_, program, 0, buffer);
      if (buffer.persistent()) {
        live += bytes;
      } else if (!buffer.in_arena()) {
        events.push_back({run_.times[p][index(buffer.alloc)].begin, bytes});
        events.push_back({run_.times[p][index(buffer.free)].end, -bytes});
      }
    }
    ChunkMemory chunks(plan_, model_);
    for (std::size_t t = 0; t < program.tasks.size(); ++t) {
      const Task& own = program.tasks[t];
      const TimeSpan& span = run_.times[p][t];
      const TaskMemory memory = chunks.of(program, own, 0);
      const std::int64_t running = span.end > span.begin ? memory.running : 0;
      events.push_back({span.begin, running});
      events.push_back({span.end, memory.after - running});
    }
    std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
      return a.time != b.time ? a.time < b.time : a.bytes < b.bytes;
    });
    std::int64_t most = live;
    for (const Event& event : events) {
      most = std::max(most, live += event.bytes);
    }
    return most;
  }

  const Plan& plan_;
  const ModelGraph& model_;
  const Simulation& run_;
};

}  // namespace

Analysis analyse(const Plan& plan, const ModelGraph& model, const Simulation& run) {
  return Analyst(plan, model, run).analyse();
}

}  // namespace piper

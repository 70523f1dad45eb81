#include "core/lower/make_plan.h"

#include <algorithm>

#include "core/lower/program.h"
#include "core/lower/synchronise.h"

namespace piper {
namespace {

TaskTimes times_of(const Dag& dag, const Adjacency& before, const Program& program,
                   const Timeline& timeline, std::vector<TaskId>& task_of) {
  TaskTimes times;
  const auto tasks = static_cast<std::uint32_t>(program.tasks.size());
  const std::uint16_t own = dag.node(program.tasks.front().node).program;
  for (std::uint32_t t = 0; t < tasks; ++t) {
    task_of[index(program.tasks[t].node)] = TaskId{t};
  }
  times.start.reserve(tasks);
  times.end.reserve(tasks);
  times.first.reserve(tasks + 1);
  times.first.push_back(0);
  for (const Task& task : program.tasks) {
    const std::uint32_t n = index(task.node);
    times.start.push_back(timeline.start[n]);
    times.end.push_back(timeline.end[n]);
    for (std::uint32_t e = before.first[n]; e < before.first[n + 1]; ++e) {
      if (dag.node(before.other[e]).program == own) {
        times.before.push_back(task_of[index(before.other[e])]);
      }
    }
    times.first.push_back(static_cast<std::uint32_t>(times.before.size()));
  }
  return times;
}

}  // namespace

Plan make_plan(const Dag& dag, const ModelGraph& model, const Config& config,
               const Timeline& timeline) {
  Plan plan = plan_tables(dag, model);
  const Adjacency before = predecessors(dag);
  std::vector<TaskId> task_of(dag.nodes.size(), none<TaskId>());
  plan.programs.reserve(dag.programs.size());
  for (std::uint32_t p = 0; p < dag.programs.size(); ++p) {
    plan.programs.push_back(build_program(dag, model, config, timeline, p));
    Program& program = plan.programs.back();
    synchronise(plan, program, times_of(dag, before, program, timeline, task_of));
  }
  return plan;
}

void share_arenas(Plan& train, const Plan& evaluate) {
  for (Program& program : train.programs) {
    const Plan::Seat seat = evaluate.seat(program.ranks[0]);
    program.arena_bytes =
        std::max(program.arena_bytes, evaluate.programs[seat.program].arena_bytes);
  }
}

}  // namespace piper

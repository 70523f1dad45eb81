#include "tests/support/plan_builder.h"

#include <algorithm>
#include <utility>

namespace piper::test {

StreamId ProgramBuilder::stream(std::string name, Stream::Kind kind) {
  program_.streams.push_back({std::move(name), kind, {}});
  drafts_.emplace_back();
  return StreamId{static_cast<std::uint32_t>(program_.streams.size() - 1)};
}

BufferId ProgramBuilder::buffer(Buffer buffer) {
  program_.buffers.push_back(buffer);
  return BufferId{static_cast<std::uint32_t>(program_.buffers.size() - 1)};
}

TaskRef ProgramBuilder::task(StreamId stream, Task task, Uses uses) {
  std::vector<Draft>& drafts = drafts_[index(stream)];
  task.stream = stream;
  drafts.push_back({task, std::move(uses)});
  return {index(stream), static_cast<std::uint32_t>(drafts.size() - 1)};
}

void ProgramBuilder::waits(TaskRef task, TaskRef for_task) {
  drafts_[task.stream][task.position].uses.waits.push_back(for_task);
}

Program ProgramBuilder::build() const {
  Program program = program_;
  std::vector<std::uint32_t> first(drafts_.size());
  std::uint32_t count = 0;
  for (std::size_t s = 0; s < drafts_.size(); ++s) {
    first[s] = count;
    program.streams[s].tasks = {count, static_cast<std::uint32_t>(drafts_[s].size())};
    count += static_cast<std::uint32_t>(drafts_[s].size());
  }
  const auto number = [&](TaskRef ref) { return TaskId{first[ref.stream] + ref.position}; };
  const auto pool = [&](const std::vector<BufferId>& buffers) {
    const auto begin = static_cast<std::uint32_t>(program.access.size());
    program.access.insert(program.access.end(), buffers.begin(), buffers.end());
    return Range{begin, static_cast<std::uint32_t>(buffers.size())};
  };
  std::vector<TaskId> waited;
  for (std::size_t s = 0; s < drafts_.size(); ++s) {
    for (std::size_t i = 0; i < drafts_[s].size(); ++i) {
      const auto& [draft, uses] = drafts_[s][i];
      const TaskId id{first[s] + static_cast<std::uint32_t>(i)};
      Task task = draft;
      task.waits.begin = static_cast<std::uint32_t>(program.waits.size());
      for (const TaskRef ref : uses.waits) {
        program.waits.push_back({number(ref), false});
      }
      for (const TaskRef ref : uses.previous) {
        program.waits.push_back({number(ref), true});
      }
      task.waits.count = static_cast<std::uint32_t>(program.waits.size()) - task.waits.begin;
      task.reads = pool(uses.reads);
      task.writes = pool(uses.writes);
      task.frees = pool(uses.frees);
      for (const BufferId buffer : uses.writes) {
        Buffer& written = program.buffers[index(buffer)];
        const bool passes = has_microbatch(written.kind);
        if (passes && !valid(written.alloc)) {
          written.alloc = id;
        }
      }
      for (const BufferId buffer : uses.frees) {
        program.buffers[index(buffer)].free = id;
      }
      program.tasks.push_back(task);
    }
  }
  for (const Wait& wait : program.waits) {
    program.tasks[index(wait.task)].records = true;
  }
  std::sort(program.buckets.begin(), program.buckets.end());
  return program;
}

ProgramBuilder& PlanBuilder::program(std::vector<std::uint32_t> ranks) {
  return programs_.emplace_back(std::move(ranks));
}

CommId PlanBuilder::communicator(Communicator communicator) {
  plan_.communicators.push_back(std::move(communicator));
  return CommId{static_cast<std::uint32_t>(plan_.communicators.size() - 1)};
}

Plan PlanBuilder::build() const {
  Plan plan = plan_;
  plan.world = 0;
  std::uint32_t next = next_node_;
  for (const ProgramBuilder& builder : programs_) {
    plan.programs.push_back(builder.build());
    plan.world += static_cast<std::uint32_t>(plan.programs.back().ranks.size());
    for (Task& task : plan.programs.back().tasks) {
      if (!valid(task.node)) {
        task.node = NodeId{next++};
      }
    }
  }
  plan.origins = {{"test", {}}};
  plan.origin_of_node.assign(next, 0);
  return plan;
}

}  // namespace piper::test

// Plans of a few tasks for tests of the simulator, with the durations that a test gives them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/simulate/simulate.h"
#include "tests/support/plan_builder.h"

namespace piper::test {

// Tasks are added with their durations; a plan is simulated only, never run.
class SmallPlan {
 public:
  // One place of one rank.
  struct Place {
    std::uint32_t program;
    ProgramBuilder* builder;
    StreamId compute;
  };

  SmallPlan() : builder_(1, 1) { builder_.plan().chunks.resize(1); }

  Place place() {
    ProgramBuilder& program = builder_.program({places_});
    durations_.emplace_back();
    return {places_++, &program, stream(places_ - 1, program, "compute", Stream::Kind::compute)};
  }

  TaskRef compute(const Place& place, Op op, std::uint64_t ticks, std::vector<TaskRef> waits = {},
                  std::uint32_t overlap = 0) {
    Task task;
    task.op = op;
    task.chunk = ChunkId{0};
    task.overlap = overlap;
    return add(place, place.compute, task, ticks, std::move(waits));
  }

  // A message from the end of `after`; each direction has a stream of its own. Returns the receive.
  TaskRef message(const Place& from, const Place& to, std::uint64_t ticks, TaskRef after) {
    const std::string name = std::to_string(from.program) + '>' + std::to_string(to.program);
    Communicator channel;
    channel.kind = Communicator::Kind::point_to_point;
    channel.stream = name;
    channel.from = from.program;
    channel.to = to.program;
    Task task;
    task.op = Op::send;
    task.node = builder_.node();
    task.peer = builder_.node();
    task.value = ValueId{0};
    task.communicator = builder_.communicator(channel);
    task.bytes = {0, 64};
    add(from, stream(from.program, *from.builder, "send " + name), task, ticks, {after});
    std::swap(task.node, task.peer);
    task.op = Op::recv;
    return add(to, stream(to.program, *to.builder, "recv " + name), task, ticks, {});
  }

  // One launch on every place, each after a task of its own.
  void collective(const std::vector<std::pair<Place, TaskRef>>& members, std::uint64_t ticks) {
    Task task;
    task.op = Op::all_reduce;
    task.bucket = BucketId{0};
    task.communicator = builder_.communicator({});
    task.bytes = {0, 64};
    for (const auto& [place, after] : members) {
      add(place, stream(place.program, *place.builder, "reduce"), task, ticks, {after});
    }
  }

  Plan plan() const { return builder_.build(); }

  // In the order of the tasks of the plan.
  Durations durations() const {
    Durations all;
    for (const auto& streams : durations_) {
      all.emplace_back();
      for (const std::vector<std::uint64_t>& stream : streams) {
        all.back().insert(all.back().end(), stream.begin(), stream.end());
      }
    }
    return all;
  }

  // Of a task in a simulation.
  template <typename T>
  T at(const std::vector<std::vector<T>>& by_task, const Place& place, TaskRef task) const {
    std::size_t number = task.position;
    for (std::uint32_t s = 0; s < task.stream; ++s) {
      number += durations_[place.program][s].size();
    }
    return by_task[place.program][number];
  }

 private:
  StreamId stream(std::uint32_t program, ProgramBuilder& builder, const std::string& name,
                  Stream::Kind kind = Stream::Kind::communication) {
    durations_[program].emplace_back();
    return builder.stream(name, kind);
  }
  TaskRef add(const Place& place, StreamId stream, Task task, std::uint64_t ticks,
              std::vector<TaskRef> waits) {
    durations_[place.program][index(stream)].push_back(ticks);
    return place.builder->task(stream, task, {.waits = std::move(waits)});
  }

  PlanBuilder builder_;
  std::uint32_t places_ = 0;
  std::vector<std::vector<std::vector<std::uint64_t>>> durations_;  // by program, stream, position
};

}  // namespace piper::test

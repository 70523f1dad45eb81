// Builds small plans by hand, for tests of what runs or checks plans.
//
//     PlanBuilder builder(microbatches, rows);
//     ProgramBuilder p = builder.program({0});
//     const StreamId compute = p.stream("compute", Stream::Kind::compute);
//     const BufferId a = p.buffer({.kind = Buffer::Kind::input, .value = tokens});
//     const TaskRef t = p.task(compute, {.op = Op::input}, {.writes = {a}});
//     Plan plan = builder.build();
//
// Tasks may be added in any order of streams; build() numbers them stream by stream, gives nodes
// that were not given, and marks what is waited for as recording.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "core/plan/plan.h"

namespace piper::test {

// A task of a program before it has its number: stream and position on it.
struct TaskRef {
  std::uint32_t stream = 0, position = 0;
};

struct Uses {
  std::vector<TaskRef> waits = {}, previous = {};
  std::vector<BufferId> reads = {}, writes = {}, frees = {};
};

class ProgramBuilder {
 public:
  explicit ProgramBuilder(std::vector<std::uint32_t> ranks) { program_.ranks = std::move(ranks); }

  StreamId stream(std::string name, Stream::Kind kind = Stream::Kind::communication);
  // `alloc` and `free` are set from the first writer and from `frees`.
  BufferId buffer(Buffer buffer);
  TaskRef task(StreamId stream, Task task, Uses uses = {});
  void waits(TaskRef task, TaskRef for_task);
  void holds(BucketId bucket) { program_.buckets.push_back(bucket); }
  void arena(std::int64_t bytes) { program_.arena_bytes = bytes; }

  Program build() const;

 private:
  struct Draft {
    Task task;
    Uses uses;
  };
  Program program_;
  std::vector<std::vector<Draft>> drafts_;  // by stream
};

class PlanBuilder {
 public:
  PlanBuilder(std::uint32_t microbatches, std::int64_t rows) {
    plan_.microbatches = microbatches;
    plan_.global_rows = rows;
  }
  Plan& plan() { return plan_; }
  ProgramBuilder& program(std::vector<std::uint32_t> ranks);
  CommId communicator(Communicator communicator);
  NodeId node() { return NodeId{next_node_++}; }

  Plan build() const;

 private:
  Plan plan_;
  std::deque<ProgramBuilder> programs_;
  std::uint32_t next_node_ = 0;
};

}  // namespace piper::test

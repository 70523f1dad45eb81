// One rank and micro-batch of the line model, with the buffers of its chunks.
#pragma once

#include "tests/runtime/tasks/harness.h"

namespace piper::test {

struct ChunkPlan : LinePlan {
  explicit ChunkPlan(std::uint32_t microbatches = 1) : LinePlan({0}, microbatches, 2) {}

  BufferId value(ValueId id, std::uint32_t microbatch = 0) {
    const bool given = id == kX || id == kLabels;
    return program.buffer({.kind = given ? Buffer::Kind::input : Buffer::Kind::activation,
                           .value = id,
                           .microbatch = microbatch});
  }
  // Of the value, as `consumer` computes it.
  BufferId gradient(ValueId id, std::uint32_t consumer) {
    return program.buffer(
        {.kind = Buffer::Kind::gradient, .value = id, .chunk = ChunkId{consumer}});
  }
  BufferId of(Buffer::Kind kind, std::uint32_t chunk = 0) {
    return program.buffer({.kind = kind, .chunk = ChunkId{chunk}});
  }
  void task(Op op, std::uint32_t chunk, Uses uses, std::uint32_t microbatch = 0) {
    program.task(compute, {.op = op, .chunk = ChunkId{chunk}, .microbatch = microbatch},
                 std::move(uses));
  }
};

// With w = (1, 10) and v = (2, 3).
struct ChunkHarness : TaskHarness {
  explicit ChunkHarness(const ChunkPlan& plan, const Config& config = plain_config())
      : TaskHarness(plan.builder.build(), config),
        w(hold(0, BucketId{0}, numbers({1, 10}))),
        v(hold(0, BucketId{1}, numbers({2, 3}))) {}
  BucketState &w, &v;
};

}  // namespace piper::test

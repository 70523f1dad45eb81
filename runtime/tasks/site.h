// Where a task is made: the plan around it, and the rank that will run it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/config/config.h"
#include "core/plan/plan.h"
#include "runtime/comm/communicator.h"
#include "runtime/tasks/cell.h"
#include "runtime/tasks/rank.h"
#include "runtime/tasks/task.h"

namespace piper {

inline at::Device to_torch(DeviceId device) {
  return {static_cast<at::DeviceType>(device.type), device.index};
}

// The group of a collective's ranks that `rank` is in.
Share group_of(const Communicator& communicator, std::uint32_t rank);

// Where the contents of a buffer lie.
struct Memory {
  at::Tensor place;  // in the arena, flat, of their type and size; undefined: the plan gives none
  std::int64_t elements = 0;
  at::ScalarType dtype = at::kFloat;

  // The place, or new memory of the launch's device, charged to `kind`. Flat.
  at::Tensor take(MemoryKind kind, const Launch& launch) const;
};

struct Site {
  const Config& config;
  const Plan& plan;
  const Program& program;
  const Task& task;
  std::uint32_t coordinate;  // of the rank in the program
  Rank& rank;
  std::vector<Cell>& cells;              // by BufferId
  const at::Tensor& arena;               // of bytes
  const Communications& communications;  // the rank's
  const Switches& switches;
  std::int64_t& moved;  // bytes that the task has moved in this period between ranks

  const ModelGraph& model() const { return rank.model.graph; }
  const Chunk& chunk() const { return plan.chunks[index(task.chunk)]; }

  // What a buffer contains: C is what the buffer's kind has.
  template <typename C>
  C& cell(BufferId id) const {
    C* const contents = std::get_if<C>(&cells[index(id)]);
    PIPER_CHECK(contents != nullptr, "a buffer of another kind");
    return *contents;
  }

  // That of the first such buffer among what the task reads and writes; null: none.
  template <typename C>
  C* find(Buffer::Kind kind, ValueId value = none<ValueId>()) const {
    const BufferId id = find_buffer(kind, value);
    return valid(id) ? &cell<C>(id) : nullptr;
  }
  BufferId find_buffer(Buffer::Kind kind, ValueId value) const;

  // Rows of a micro-batch on this rank.
  std::int64_t rows(std::uint32_t microbatch) const {
    return rows_of(plan, program, coordinate, microbatch).count;
  }

  // The sizes of a value in the task's micro-batch.
  std::vector<std::int64_t> shape(ValueId value, std::uint32_t microbatch) const;

  // The task's; null where it has none.
  Collective* collective() const;

  BucketState& bucket(BucketId id) const { return rank.bucket(id); }

  Memory memory(BufferId id) const;
};

// A task whose buffers end with it as the plan says.
class ReleasingTask : public TaskBody {
 public:
  explicit ReleasingTask(const Site& site);
  void launch(const Launch& launch) final {
    enqueue(launch);
    for (Cell* const cell : frees_) {
      clear(*cell);
    }
  }

 protected:
  virtual void enqueue(const Launch& launch) = 0;

 private:
  std::vector<Cell*> frees_;
};

using MadeTask = Expected<std::unique_ptr<TaskBody>>;

// The plan and the runtime do not fit together: our mistake, but told like a user's. `what` follows
// the name of the task.
tl::unexpected<Diagnostics> misfit(const Site& site, const std::string& what);

}  // namespace piper

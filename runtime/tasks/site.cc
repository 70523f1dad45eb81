#include "runtime/tasks/site.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "core/plan/groups.h"
#include "runtime/tasks/describe.h"

namespace piper {

Share group_of(const Communicator& communicator, std::uint32_t rank) {
  const GroupSeat seat = group_seat(communicator, rank);
  return {groups_of(communicator)[seat.group], seat.place};
}

at::Tensor Memory::take(MemoryKind kind, const Launch& launch) const {
  if (place.defined()) {
    return place;
  }
  const Charge charge(kind);
  return at::empty({elements}, at::dtype(dtype).device(to_torch(launch.device)));
}

BufferId Site::find_buffer(Buffer::Kind kind, ValueId value) const {
  for (const auto buffers : {program.reads_of(task), program.writes_of(task)}) {
    for (const BufferId id : buffers) {
      if (program.buffer(id).kind == kind && program.buffer(id).value == value) {
        return id;
      }
    }
  }
  return none<BufferId>();
}

std::vector<std::int64_t> Site::shape(ValueId value, std::uint32_t microbatch) const {
  std::vector<std::int64_t> sizes;
  for (const Affine& size : model().value(value).shape) {
    sizes.push_back(size.at(rows(microbatch)));
  }
  return sizes;
}

Collective* Site::collective() const {
  return valid(task.communicator) ? communications[index(task.communicator)].collective.get()
                                  : nullptr;
}

Memory Site::memory(BufferId id) const {
  const Buffer& buffer = program.buffer(id);
  const DType dtype = valid(buffer.value) ? model().value(buffer.value).dtype
                      : buffer.kind == Buffer::Kind::full_gradient
                          ? gradient_dtype(plan.buckets[index(buffer.bucket)].dtype)
                          : plan.buckets[index(buffer.bucket)].dtype;
  const std::int64_t bytes = bytes_of(plan, program, coordinate, buffer);
  Memory memory{{}, bytes / size_of(dtype), to_torch(dtype)};
  if (buffer.in_arena()) {
    // With a version of its own: a write to another place is none to what autograd saved of this.
    memory.place = arena.narrow(0, buffer.offset, bytes).view(memory.dtype).variable_data();
  }
  return memory;
}

ReleasingTask::ReleasingTask(const Site& site) {
  for (const BufferId id : site.program.frees_of(site.task)) {
    frees_.push_back(&site.cells[index(id)]);
  }
}

tl::unexpected<Diagnostics> misfit(const Site& site, const std::string& what) {
  return fail(error(
      "run.plan",
      describe(site.plan, site.model(), site.rank.number, site.program, site.task) + ": " + what));
}

}  // namespace piper

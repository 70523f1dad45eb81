#include "runtime/tasks/chain_memory.h"

#include <algorithm>

namespace piper {

ChainMemory::ChainMemory(const Site& site) {
  for (const BufferId id : site.program.reads_of(site.task)) {
    const Buffer& buffer = site.program.buffer(id);
    if (buffer.kind == Buffer::Kind::gathered) {
      gathered_.push_back(&site.cell<GatheredCell>(id));
    }
  }
  for (const BufferId id : site.program.writes_of(site.task)) {
    const Buffer& buffer = site.program.buffer(id);
    if (buffer.kind == Buffer::Kind::full_gradient) {
      LentStorage* const lent = site.bucket(buffer.bucket).full_gradient.get();
      PIPER_CHECK(lent != nullptr, "a gradient is reduced of which the rank keeps the whole");
      const bool first = site.program.tasks.data() + index(buffer.alloc) == &site.task;
      gradients_.push_back({&site.cell<TensorCell>(id), lent, site.memory(id), first});
    }
  }
}

void ChainMemory::enter(const Launch& launch) const {
  for (const GatheredCell* const cell : gathered_) {
    cell->parameters.lend(cell->tensor);
  }
  for (const Gradient& gradient : gradients_) {
    if (gradient.first) {
      gradient.cell->tensor = gradient.memory.take(MemoryKind::gradient, launch);
      gradient.cell->tensor.zero_();
    }
    gradient.lent->lend(gradient.cell->tensor);
  }
}

}  // namespace piper

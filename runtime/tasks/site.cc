#include "runtime/tasks/site.h"

#include <algorithm>

#include "runtime/exec/describe.h"

namespace piper {

Cell* Site::find(Buffer::Kind kind, ValueId value) const {
  for (const auto buffers : {program.reads_of(task), program.writes_of(task)}) {
    for (const BufferId id : buffers) {
      if (program.buffer(id).kind == kind && program.buffer(id).value == value) {
        return cell(id);
      }
    }
  }
  return nullptr;
}

std::vector<std::int64_t> Site::shape(ValueId value, std::uint32_t microbatch) const {
  std::vector<std::int64_t> sizes;
  for (const Affine& size : model().value(value).shape) {
    sizes.push_back(size.at(rows(microbatch)));
  }
  return sizes;
}

std::pair<Collective*, std::uint32_t> Site::collective() const {
  if (!valid(task.communicator)) {
    return {nullptr, 0};
  }
  const std::vector<std::uint32_t>& ranks = plan.communicators[index(task.communicator)].ranks;
  const auto found = std::find(ranks.begin(), ranks.end(), rank.number);
  PIPER_CHECK(found != ranks.end(), "a rank runs a collective that it is no member of");
  return {communications[index(task.communicator)].collective.get(),
          static_cast<std::uint32_t>(found - ranks.begin())};
}

BucketState& Site::bucket(BucketId id) const {
  PIPER_CHECK(
      index(id) < rank.buckets.size() && rank.buckets[index(id)],
      "rank " + std::to_string(rank.number) + " has no bucket " + std::to_string(index(id)));
  return *rank.buckets[index(id)];
}

at::Tensor Site::slot_of(BufferId id) const {
  const Buffer& buffer = program.buffer(id);
  if (buffer.slot == Buffer::kNoSlot) {
    return {};
  }
  std::int64_t bytes = size_of(model().value(buffer.value).dtype);
  for (const std::int64_t size : shape(buffer.value, buffer.microbatch)) {
    bytes *= size;
  }
  PIPER_CHECK(bytes <= slots[buffer.slot].numel(), "a value is larger than its slot");
  return slots[buffer.slot].narrow(0, 0, bytes).view(to_torch(model().value(buffer.value).dtype));
}

ReleasingTask::ReleasingTask(const Site& site) {
  for (const BufferId id : site.program.frees_of(site.task)) {
    frees_.push_back(site.cell(id));
  }
}

tl::unexpected<Diagnostics> misfit(const Site& site, const std::string& what) {
  return fail(error(
      "run.plan",
      describe(site.plan, site.model(), site.rank.number, site.program, site.task) + ": " + what));
}

}  // namespace piper

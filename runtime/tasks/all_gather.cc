#include "runtime/tasks/all_gather.h"

#include "runtime/tasks/reduction.h"

namespace piper {
namespace {

class AllGatherTask final : public ReleasingTask {
 public:
  // `gathered` null: the bucket has room for the whole.
  AllGatherTask(const Site& site, GatheredCell* gathered, Memory memory)
      : ReleasingTask(site),
        bucket_(site.bucket(site.task.bucket)),
        gathered_(gathered),
        memory_(std::move(memory)),
        moved_(site.moved),
        gather_{tag_of(site.task), bucket_.bucket->dtype, nullptr, 0, nullptr},
        group_(site.collective()) {}

 private:
  void enqueue(const Launch& launch) override {
    if (gathered_ != nullptr) {
      gathered_->tensor = memory_.take(MemoryKind::gathered, launch);
    }
    const at::Tensor& whole = gathered_ != nullptr ? gathered_->tensor : bucket_.value;
    PIPER_CHECK(whole.numel() == bucket_.part.numel() * group_->size(),
                "a bucket is not as large as its parts");
    gather_.part = bucket_.part.const_data_ptr();
    gather_.count = static_cast<std::size_t>(bucket_.part.numel());
    gather_.whole = whole.data_ptr();
    moved_ = static_cast<std::int64_t>(group_->all_gather(launch, gather_));
  }

  const BucketState& bucket_;
  GatheredCell* gathered_;
  Memory memory_;
  std::int64_t& moved_;
  Gather gather_;
  Collective* group_;
};

}  // namespace

MadeTask make_all_gather(const Site& site) {
  const auto writes = site.program.writes_of(site.task);
  if (writes.size() != 1 || !valid(site.task.bucket) || !valid(site.task.communicator)) {
    return misfit(site, "expected a bucket, a communicator and one buffer to write");
  }
  if (site.program.buffer(writes[0]).kind == Buffer::Kind::gathered) {
    return std::make_unique<AllGatherTask>(site, &site.cell<GatheredCell>(writes[0]),
                                           site.memory(writes[0]));
  }
  return std::make_unique<AllGatherTask>(site, nullptr, Memory{});
}

}  // namespace piper

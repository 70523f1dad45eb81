#include "runtime/tasks/all_gather.h"

#include "runtime/tasks/reduction.h"

namespace piper {
namespace {

class AllGatherTask final : public ReleasingTask {
 public:
  // `gathered` null: the bucket has room for the whole.
  AllGatherTask(const Site& site, Cell* gathered, Memory memory)
      : ReleasingTask(site),
        bucket_(site.bucket(site.task.bucket)),
        gathered_(gathered),
        memory_(std::move(memory)),
        moved_(site.moved),
        tag_(tag_of(site.task)) {
    std::tie(group_, member_) = site.collective();
  }

 private:
  void launch(const StepContext&) override {
    if (gathered_ != nullptr) {
      gathered_->tensor = memory_.take(MemoryKind::gathered);
    }
    const at::Tensor& whole = gathered_ != nullptr ? gathered_->tensor : bucket_.value;
    PIPER_CHECK(whole.numel() == bucket_.part.numel() * group_->size(),
                "a bucket is not as large as its parts");
    const Gather gather{tag_, bucket_.part.const_data_ptr(), bucket_.part.nbytes(),
                        whole.data_ptr()};
    moved_ = static_cast<std::int64_t>(group_->all_gather(member_, gather));
  }

  const BucketState& bucket_;
  Cell* gathered_;
  Memory memory_;
  std::int64_t& moved_;
  std::uint64_t tag_;
  Collective* group_ = nullptr;
  std::uint32_t member_ = 0;
};

}  // namespace

MadeTask make_all_gather(const Site& site) {
  const auto writes = site.program.writes_of(site.task);
  if (writes.size() != 1 || !valid(site.task.bucket) || !valid(site.task.communicator)) {
    return misfit(site, "expected a bucket, a communicator and one buffer to write");
  }
  if (site.program.buffer(writes[0]).kind == Buffer::Kind::gathered) {
    return std::make_unique<AllGatherTask>(site, site.cell(writes[0]), site.memory(writes[0]));
  }
  return std::make_unique<AllGatherTask>(site, nullptr, Memory{});
}

}  // namespace piper

#include "runtime/tasks/all_reduce.h"

#include "runtime/tasks/reduction.h"

namespace piper {
namespace {

class AllReduceTask final : public ReleasingTask {
 public:
  explicit AllReduceTask(const Site& site)
      : ReleasingTask(site), group_(site.collective()), moved_(site.moved) {
    const BucketState& bucket = site.bucket(site.task.bucket);
    reduction_ = {tag_of(site.task), gradient_dtype(bucket.bucket->dtype),
                  bucket.gradient.data_ptr(), static_cast<std::size_t>(bucket.gradient.numel())};
  }

 private:
  void enqueue(const Launch& launch) override {
    if (group_ != nullptr) {
      moved_ = static_cast<std::int64_t>(group_->all_reduce(launch, reduction_));
    }
  }

  Collective* group_;
  std::int64_t& moved_;
  Reduction reduction_;
};

}  // namespace

MadeTask make_all_reduce(const Site& site) {
  if (!valid(site.task.bucket) || !site.bucket(site.task.bucket).gradient.defined()) {
    return misfit(site, "expected a bucket with gradients");
  }
  return std::make_unique<AllReduceTask>(site);
}

}  // namespace piper

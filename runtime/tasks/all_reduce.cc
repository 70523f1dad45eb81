#include "runtime/tasks/all_reduce.h"

#include "runtime/tasks/reduction.h"

namespace piper {
namespace {

class AllReduceTask final : public ReleasingTask {
 public:
  AllReduceTask(const Site& site, Collective* group, std::uint32_t member)
      : ReleasingTask(site), group_(group), member_(member), moved_(site.moved) {
    const at::Tensor& gradient = site.bucket(site.task.bucket).gradient;
    reduction_ = {tag_of(site.task), element_of(gradient), gradient.data_ptr(),
                  static_cast<std::size_t>(gradient.numel())};
  }

 private:
  void launch(const StepContext&) override {
    if (group_ != nullptr) {
      moved_ = static_cast<std::int64_t>(group_->all_reduce(member_, reduction_));
    }
  }

  Collective* group_;
  std::uint32_t member_;
  std::int64_t& moved_;
  Reduction reduction_;
};

}  // namespace

MadeTask make_all_reduce(const Site& site) {
  if (!valid(site.task.bucket) || !site.bucket(site.task.bucket).gradient.defined()) {
    return misfit(site, "expected a bucket with gradients");
  }
  const auto [group, member] = site.collective();
  return std::make_unique<AllReduceTask>(site, group, member);
}

}  // namespace piper

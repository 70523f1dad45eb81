#include "runtime/tasks/all_reduce.h"

#include "runtime/tasks/reduction.h"

namespace piper {
namespace {

class AllReduceTask final : public ReleasingTask {
 public:
  AllReduceTask(const Site& site, Collective* group, std::uint32_t member)
      : ReleasingTask(site), group_(group), member_(member) {
    const at::Tensor& gradient = site.bucket(site.task.bucket).gradient;
    reduction_ = {tag_of(site.task),
                  gradient.scalar_type() == at::kDouble ? Element::float64 : Element::float32,
                  gradient.data_ptr(), static_cast<std::size_t>(gradient.numel())};
  }

 private:
  void launch(const StepContext&) override {
    if (group_ != nullptr) {
      group_->all_reduce(member_, reduction_);
    }
  }

  Collective* group_;
  std::uint32_t member_;
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

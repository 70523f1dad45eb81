#include "runtime/tasks/reduce_scatter.h"

#include "runtime/tasks/reduction.h"

namespace piper {
namespace {

class ReduceScatterTask final : public ReleasingTask {
 public:
  ReduceScatterTask(const Site& site, const TensorCell& whole, const at::Tensor& part)
      : ReleasingTask(site),
        whole_(whole),
        part_(part),
        moved_(site.moved),
        group_(site.collective()),
        scatter_{tag_of(site.task), gradient_dtype(site.bucket(site.task.bucket).bucket->dtype),
                 nullptr, 0, part.data_ptr()} {}

 private:
  void enqueue(const Launch& launch) override {
    PIPER_CHECK(whole_.tensor.numel() == part_.numel() * group_->size(),
                "a gradient is not as large as its parts");
    scatter_.whole = whole_.tensor.const_data_ptr();
    scatter_.count = static_cast<std::size_t>(whole_.tensor.numel());
    moved_ = static_cast<std::int64_t>(group_->reduce_scatter(launch, scatter_));
  }

  const TensorCell& whole_;
  const at::Tensor part_;
  std::int64_t& moved_;
  Collective* group_;
  Scatter scatter_;
};

}  // namespace

MadeTask make_reduce_scatter(const Site& site) {
  const TensorCell* const whole = site.find<TensorCell>(Buffer::Kind::full_gradient);
  if (whole == nullptr || !site.bucket(site.task.bucket).gradient.defined() ||
      !valid(site.task.communicator)) {
    return misfit(site, "expected a bucket with gradients, and a communicator");
  }
  return std::make_unique<ReduceScatterTask>(site, *whole, site.bucket(site.task.bucket).gradient);
}

}  // namespace piper

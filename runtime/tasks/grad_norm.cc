#include "runtime/tasks/grad_norm.h"

#include <ATen/ops/isfinite.h>

#include "runtime/tasks/kernels.h"
#include "runtime/tasks/reduction.h"

namespace piper {
namespace {

class GradNormTask final : public ReleasingTask {
 public:
  GradNormTask(const Site& site, ScalarCell& result)
      : ReleasingTask(site),
        norm_(result.number),
        scalars_(site.rank.scalars),
        tag_(tag_of(site.task)),
        group_(site.collective()) {
    for (const BufferId id : site.program.reads_of(site.task)) {
      if (site.program.buffer(id).kind == Buffer::Kind::parameter_gradient) {
        add(site, site.program.buffer(id).bucket);
      }
    }
  }

 private:
  void add(const Site& site, BucketId id) {
    const at::Tensor& gradient = site.bucket(id).gradient;
    const Share holders = holders_of(site, id);
    const Rows share = cut_rows({0, gradient.numel()},
                                static_cast<std::uint32_t>(holders.ranks.size()), holders.index);
    parts_.push_back(gradient.narrow(0, share.begin, share.count));
  }

  // The ranks that have the same of a bucket's gradient: those that reduce it last.
  static Share holders_of(const Site& site, BucketId id) {
    for (const Task& task : site.program.tasks) {
      if (task.op == Op::all_reduce && task.bucket == id) {
        return group_of(site.plan.communicators[index(task.communicator)], site.rank.number);
      }
    }
    return {{site.rank.number}, 0};
  }

  void enqueue(const Launch& launch) override {
    norm_.zero_();
    for (const at::Tensor& part : parts_) {
      add_squares(part, norm_);
    }
    sum_over(group_, launch, tag_, norm_);
    norm_.sqrt_();
    scalars_.norm.copy_(norm_);
    scalars_.finite.copy_(at::isfinite(norm_));
    scalars_.skip.add_(1).sub_(scalars_.finite);
  }

  at::Tensor norm_;
  const StepScalars& scalars_;
  std::uint64_t tag_;
  Collective* group_;
  std::vector<at::Tensor> parts_;  // of gradients: the rank's own
};

}  // namespace

MadeTask make_grad_norm(const Site& site) {
  ScalarCell* const result = site.find<ScalarCell>(Buffer::Kind::grad_norm);
  if (result == nullptr) {
    return misfit(site, "no buffer for the norm");
  }
  return std::make_unique<GradNormTask>(site, *result);
}

}  // namespace piper

#include "runtime/tasks/update.h"

#include <cmath>

namespace piper {
namespace {

class UpdateTask final : public ReleasingTask {
 public:
  UpdateTask(const Site& site, const ScalarCell& norm)
      : ReleasingTask(site),
        bucket_(site.bucket(site.task.bucket)),
        norm_(norm),
        switches_(site.switches),
        max_norm_(site.config.training.max_norm),
        settings_(settings_of(site.config, bucket_.bucket->optimizer_group)) {}

 private:
  void enqueue(const Launch& launch) override {
    if (switches_.keep_gradients) {
      bucket_.kept.copy_(bucket_.gradient);
    }
    if (switches_.update && std::isfinite(norm_.number)) {
      switches_.gate.pass();
      const Charge charge(MemoryKind::optimizer);
      OptimizerSettings settings = settings_;
      settings.lr *= launch.lr_factor;
      update(settings, launch.step, bucket_.master, bucket_.gradient,
             clip_scale(max_norm_, norm_.number), bucket_.optimizer);
      if (!bucket_.part.is_same(bucket_.master)) {
        bucket_.part.copy_(bucket_.master);
      }
    }
    bucket_.gradient.zero_();
  }

  BucketState& bucket_;
  const ScalarCell& norm_;
  const Switches& switches_;
  double max_norm_;
  OptimizerSettings settings_;
};

}  // namespace

MadeTask make_update(const Site& site) {
  const ScalarCell* const norm = site.find<ScalarCell>(Buffer::Kind::grad_norm);
  if (norm == nullptr) {
    return misfit(site, "no gradient norm");
  }
  if (!valid(site.task.bucket) || !site.bucket(site.task.bucket).gradient.defined()) {
    return misfit(site, "expected a bucket with gradients");
  }
  return std::make_unique<UpdateTask>(site, *norm);
}

}  // namespace piper

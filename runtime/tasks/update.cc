#include "runtime/tasks/update.h"

namespace piper {
namespace {

class UpdateTask final : public ReleasingTask {
 public:
  UpdateTask(const Site& site, const ScalarCell& norm)
      : ReleasingTask(site),
        bucket_(site.bucket(site.task.bucket)),
        scalars_{site.rank.scalars.lr_factor, site.rank.scalars.updates, norm.number,
                 site.rank.scalars.skip},
        switches_(site.switches),
        max_norm_(site.config.training.max_norm),
        settings_(settings_of(site.config, bucket_.bucket->optimizer_group)) {
    const Charge charge(site.rank.account.get(), MemoryKind::optimizer);
    bucket_.optimizer = make_state(settings_, bucket_.master);
  }

 private:
  void enqueue(const Launch&) override {
    if (switches_.keep_gradients) {
      bucket_.kept.copy_(bucket_.gradient);
    }
    switches_.gate.pass();
    update(settings_, max_norm_, scalars_, bucket_.master, bucket_.gradient, bucket_.optimizer);
    if (!bucket_.part.is_same(bucket_.master)) {
      bucket_.part.copy_(bucket_.master);
    }
    bucket_.gradient.zero_();
  }

  BucketState& bucket_;
  UpdateScalars scalars_;
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

#include "runtime/tasks/token_count.h"

#include "runtime/tasks/kernels.h"
#include "runtime/tasks/reduction.h"

namespace piper {
namespace {

class TokenCountTask final : public ReleasingTask {
 public:
  TokenCountTask(const Site& site, ScalarCell& result)
      : ReleasingTask(site),
        count_(result.number),
        tag_(tag_of(site.task)),
        group_(site.collective()) {
    for (const BufferId id : site.program.reads_of(site.task)) {
      if (site.program.buffer(id).value == site.model().labels) {
        labels_.push_back(&site.cell<TensorCell>(id));
      }
    }
  }

 private:
  void enqueue(const Launch& launch) override {
    count_.zero_();
    for (const TensorCell* const cell : labels_) {
      add_counted(cell->tensor, count_);
    }
    sum_over(group_, launch, tag_, count_);
  }

  at::Tensor count_;
  std::uint64_t tag_;
  Collective* group_;
  std::vector<const TensorCell*> labels_;
};

}  // namespace

MadeTask make_token_count(const Site& site) {
  ScalarCell* const result = site.find<ScalarCell>(Buffer::Kind::token_count);
  if (result == nullptr) {
    return misfit(site, "no buffer for the token count");
  }
  return std::make_unique<TokenCountTask>(site, *result);
}

}  // namespace piper

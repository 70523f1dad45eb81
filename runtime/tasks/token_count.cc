#include "runtime/tasks/token_count.h"

#include <algorithm>

#include "runtime/data/dataset.h"
#include "runtime/tasks/reduction.h"

namespace piper {
namespace {

class TokenCountTask final : public ReleasingTask {
 public:
  TokenCountTask(const Site& site, ScalarCell& result)
      : ReleasingTask(site), result_(result), tag_(tag_of(site.task)) {
    group_ = site.collective();
    for (const BufferId id : site.program.reads_of(site.task)) {
      if (site.program.buffer(id).value == site.model().labels) {
        labels_.push_back(&site.cell<TensorCell>(id));
      }
    }
  }

 private:
  void enqueue(const Launch& launch) override {
    std::int64_t count = 0;
    for (const TensorCell* const cell : labels_) {
      const at::Tensor labels = cell->tensor.contiguous();
      const std::int64_t* const begin = labels.const_data_ptr<std::int64_t>();
      count += labels.numel() - std::count(begin, begin + labels.numel(), kIgnoredLabel);
    }
    result_.number = sum_over<1>(group_, launch, tag_, {static_cast<double>(count)})[0];
  }

  ScalarCell& result_;
  std::uint64_t tag_;
  Collective* group_ = nullptr;
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

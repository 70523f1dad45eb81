#include "runtime/tasks/loss_report.h"

#include <algorithm>

#include "runtime/tasks/reduction.h"

namespace piper {
namespace {

// The lowest rank that holds the (global) token count speaks for all.
bool speaks(const Site& site) {
  std::uint32_t lowest = site.rank.number;
  bool holds = false;
  for (const Program& program : site.plan.programs) {
    for (const Buffer& buffer : program.buffers) {
      if (buffer.kind == Buffer::Kind::token_count) {
        lowest = std::min(lowest, program.ranks.front());
        holds = holds || &program == &site.program;
      }
    }
  }
  return holds && lowest == site.rank.number;
}

class LossReportTask final : public ReleasingTask {
 public:
  explicit LossReportTask(const Site& site)
      : ReleasingTask(site),
        scalars_(site.rank.scalars),
        loss_sum_(site.find<ScalarCell>(Buffer::Kind::loss_sum)),
        count_(speaks(site) ? site.find<ScalarCell>(Buffer::Kind::token_count) : nullptr),
        tag_(tag_of(site.task)),
        group_(site.collective()) {}

 private:
  void enqueue(const Launch& launch) override {
    if (loss_sum_ != nullptr) {
      scalars_.loss_sum.copy_(loss_sum_->number);
      loss_sum_->number.zero_();
    }
    if (count_ != nullptr) {
      scalars_.tokens.copy_(count_->number);
    }
    sum_over(group_, launch, tag_, scalars_.sums);
  }

  const StepScalars& scalars_;  // whose sums are 0 where the rank has nothing to add
  const ScalarCell* loss_sum_;
  const ScalarCell* count_;
  std::uint64_t tag_;
  Collective* group_;
};

}  // namespace

MadeTask make_loss_report(const Site& site) {
  return std::make_unique<LossReportTask>(site);
}

}  // namespace piper

#include "runtime/tasks/loss_report.h"

#include <algorithm>
#include <limits>

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
        report_(site.rank.report),
        loss_sum_(site.find<ScalarCell>(Buffer::Kind::loss_sum)),
        count_(speaks(site) ? site.find<ScalarCell>(Buffer::Kind::token_count) : nullptr),
        tag_(tag_of(site.task)) {
    group_ = site.collective();
  }

 private:
  void enqueue(const Launch& launch) override {
    const double loss = loss_sum_ != nullptr ? loss_sum_->number : 0;
    const double count = count_ != nullptr ? count_->number : 0;
    const auto [all_losses, tokens] = sum_over<2>(group_, launch, tag_, {loss, count});
    report_.loss = tokens > 0 ? all_losses / tokens : std::numeric_limits<double>::quiet_NaN();
    report_.tokens = tokens;
    if (loss_sum_ != nullptr) {
      loss_sum_->number = 0;
    }
  }

  StepReport& report_;
  ScalarCell* loss_sum_;
  const ScalarCell* count_;
  std::uint64_t tag_;
  Collective* group_ = nullptr;
};

}  // namespace

MadeTask make_loss_report(const Site& site) {
  return std::make_unique<LossReportTask>(site);
}

}  // namespace piper

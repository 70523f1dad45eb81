#include "runtime/tasks/grad_norm.h"

#include <algorithm>
#include <cmath>

#include "runtime/tasks/reduction.h"

namespace piper {
namespace {

// In double, so that no sum of squares of floats overflows; in lanes, so that it vectorises.
template <typename T>
double sum_of_squares(const T* data, std::int64_t count) {
  constexpr std::int64_t kLanes = 16;
  std::array<double, kLanes> lanes{};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const double value = data[i + lane];
      lanes[lane] += value * value;
    }
  }
  double sum = 0;
  for (; i < count; ++i) {
    sum += static_cast<double>(data[i]) * data[i];
  }
  for (const double lane : lanes) {
    sum += lane;
  }
  return sum;
}

class GradNormTask final : public ReleasingTask {
 public:
  GradNormTask(const Site& site, ScalarCell& result)
      : ReleasingTask(site), result_(result), report_(site.rank.report), tag_(tag_of(site.task)) {
    group_ = site.collective();
    for (const BufferId id : site.program.reads_of(site.task)) {
      if (site.program.buffer(id).kind == Buffer::Kind::parameter_gradient) {
        add(site, site.program.buffer(id).bucket);
      }
    }
  }

 private:
  struct Part {
    at::Tensor gradient;
    std::int64_t begin, count;
  };

  void add(const Site& site, BucketId id) {
    const at::Tensor& gradient = site.bucket(id).gradient;
    const Share holders = holders_of(site, id);
    const Rows share = cut_rows({0, gradient.numel()},
                                static_cast<std::uint32_t>(holders.ranks.size()), holders.index);
    parts_.push_back({gradient, share.begin, share.count});
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
    double squares = 0;
    for (const Part& part : parts_) {
      squares +=
          part.gradient.scalar_type() == at::kDouble
              ? sum_of_squares(part.gradient.const_data_ptr<double>() + part.begin, part.count)
              : sum_of_squares(part.gradient.const_data_ptr<float>() + part.begin, part.count);
    }
    result_.number = std::sqrt(sum_over<1>(group_, launch, tag_, {squares})[0]);
    report_.norm = result_.number;
    report_.finite = std::isfinite(result_.number);
  }

  ScalarCell& result_;
  StepReport& report_;
  std::uint64_t tag_;
  Collective* group_ = nullptr;
  std::vector<Part> parts_;
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

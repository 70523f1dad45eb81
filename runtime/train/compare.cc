#include "runtime/train/compare.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/max.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace piper {
namespace {

constexpr std::size_t kRows = 12;  // of the table
constexpr double kInfinite = std::numeric_limits<double>::infinity();

// What was compared and does not differ in a bit says so: a bare 0 reads as if nothing was
// compared.
std::string number(double error) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1e", error);
  return error == 0 ? "equal" : text;
}

std::string place(const Difference& difference) {
  return difference.error == 0 ? "-"
                               : "rank " + std::to_string(difference.rank) + " step " +
                                     std::to_string(difference.step);
}

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

// The largest of all differences, with what it is a difference of.
struct Largest {
  const Difference* difference = nullptr;
  std::string what;
  double limit = 0;
  double excess = -1;  // error / limit

  void add(const Difference& candidate, double of, const std::string& name) {
    if (candidate.error / of > excess) {
      excess = candidate.error / of;
      difference = &candidate;
      limit = of;
      what = name;
    }
  }
};

}  // namespace

double relative_error(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes()) {
    return kInfinite;
  }
  if (b.numel() == 0) {
    return 0;
  }
  const at::Tensor wide = b.to(at::kDouble);
  const double difference = a.to(at::kDouble).sub(wide).abs().max().item<double>();
  const double scale = wide.abs().max().item<double>();
  if (scale == 0) {
    return difference == 0 ? 0 : kInfinite;
  }
  const double error = difference / scale;
  return std::isfinite(error) ? error : kInfinite;
}

bool bitwise_equal(const at::Tensor& a, const at::Tensor& b) {
  return a.dtype() == b.dtype() && a.sizes() == b.sizes() &&
         a.contiguous().view(at::kByte).equal(b.contiguous().view(at::kByte));
}

Tolerance tolerance_of(DType dtype, OptimizerName optimizer) {
  switch (dtype) {
    case DType::float64:
      // Adam divides by the root of the second moment, which enlarges differences of small
      // gradients.
      return {1e-10, optimizer == OptimizerName::adamw ? 1e-9 : 1e-10, false};
    case DType::bfloat16:
      // One rounding of a value to bfloat16 is up to 2^-8 of it. Forward and backward see the same
      // micro-batches, so what differs is the order of the sums where several chunks use a value or
      // a tied weight.
      return {0x1p-7, 1e-6, true};
    default:
      return {1e-5, 1e-6, true};
  }
}

void Difference::add(double candidate, std::uint32_t at_rank, std::int64_t at_step) {
  if (!(candidate <= error)) {
    *this = {std::isnan(candidate) ? kInfinite : candidate, at_rank, at_step};
  }
}

bool Comparison::passed() const {
  const auto small = [&](const ParameterDifference& p) {
    return p.faults.empty() && p.gradient.error <= tolerance.gradient &&
           p.update.error <= tolerance.update;
  };
  return loss.error <= tolerance.gradient && norm.error <= tolerance.gradient &&
         evaluation.error <= tolerance.gradient &&
         std::all_of(parameters.begin(), parameters.end(), small);
}

std::string Comparison::text() const {
  std::vector<const ParameterDifference*> order;
  std::size_t width = 0;
  for (const ParameterDifference& parameter : parameters) {
    order.push_back(&parameter);
  }
  const auto excess = [&](const ParameterDifference* p) {
    return p->faults.empty() ? std::max(p->gradient.error / tolerance.gradient,
                                        p->update.error / tolerance.update)
                             : kInfinite;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const auto* a, const auto* b) { return excess(a) > excess(b); });
  const std::size_t shown = std::min(order.size(), kRows);
  for (std::size_t i = 0; i < shown; ++i) {
    width = std::max(width, order[i]->name.size());
  }

  std::string text =
      padded("largest differences", width) + "  gradient  at             update    at\n";
  Largest largest;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const ParameterDifference& p = *order[i];
    if (i < shown) {
      std::string row = padded(p.name, width) + "  " + padded(number(p.gradient.error), 8) + "  " +
                        padded(place(p.gradient), 13) + "  " + padded(number(p.update.error), 8) +
                        "  " + place(p.update);
      text += row + '\n';
      for (const std::string& fault : p.faults) {
        text += "  " + fault + '\n';
      }
    }
    largest.add(p.gradient, tolerance.gradient, "gradient of " + p.name);
    largest.add(p.update, tolerance.update, "update of " + p.name);
  }
  if (order.size() > shown) {
    text += "and " + std::to_string(order.size() - shown) + " parameters that differ no more\n";
  }
  if (tolerance.same_gradients) {
    text += "update: against one device's optimizer, given the gradients of this run\n";
  }
  text += "loss " + number(loss.error) + "  evaluation loss " + number(evaluation.error) +
          "  gradient norm " + number(norm.error) + '\n';
  largest.add(loss, tolerance.gradient, "loss");
  largest.add(norm, tolerance.gradient, "gradient norm");
  largest.add(evaluation, tolerance.gradient, "evaluation loss");

  const auto faulty =
      std::find_if(order.begin(), order.end(), [](const auto* p) { return !p->faults.empty(); });
  text += "parity with one device: ";
  if (faulty != order.end()) {
    return text + "not met: " + (*faulty)->name + ": " + (*faulty)->faults.front();
  }
  if (passed() && largest.difference->error == 0) {
    return text + "ok, every number is equal";
  }
  text += passed() ? "ok, largest difference " : "not met, largest difference ";
  text += number(largest.difference->error) + " (" + largest.what;
  if (largest.difference->error > 0 && largest.what.find(" of ") != std::string::npos) {
    text += ", rank " + std::to_string(largest.difference->rank);
  }
  text += passed() ? ")" : "), expected at most " + number(largest.limit);
  return text;
}

}  // namespace piper

#include "runtime/tasks/kernels.h"

#include <ATen/Dispatch.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "runtime/data/dataset.h"

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

}  // namespace

void add_counted(const at::Tensor& labels, const at::Tensor& sum) {
  const at::Tensor flat = labels.contiguous();
  const auto* const begin = flat.const_data_ptr<std::int64_t>();
  *sum.mutable_data_ptr<double>() +=
      static_cast<double>(flat.numel() - std::count(begin, begin + flat.numel(), kIgnoredLabel));
}

void add_squares(const at::Tensor& values, const at::Tensor& sum) {
  *sum.mutable_data_ptr<double>() +=
      values.scalar_type() == at::kDouble
          ? sum_of_squares(values.const_data_ptr<double>(), values.numel())
          : sum_of_squares(values.const_data_ptr<float>(), values.numel());
}

void add_number(const at::Tensor& value, const at::Tensor& sum) {
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, value.scalar_type(), "add_number", [&] {
    *sum.mutable_data_ptr<double>() += static_cast<double>(*value.const_data_ptr<scalar_t>());
  });
}

void fill_with_inverse(const at::Tensor& count, const at::Tensor& to) {
  const double number = *count.const_data_ptr<double>();
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, to.scalar_type(), "fill_with_inverse",
                                  [&] {
                                    std::fill_n(to.mutable_data_ptr<scalar_t>(), to.numel(),
                                                static_cast<scalar_t>(number > 0 ? 1 / number : 0));
                                  });
}

}  // namespace piper

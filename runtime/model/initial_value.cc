#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <cmath>
#include <numbers>
#include <numeric>

#include "core/base/hash.h"
#include "core/base/random.h"
#include "runtime/model/build.h"

namespace piper {
namespace {

// In (0, 1], on 53 bits, so that its logarithm is finite.
double uniform(std::uint64_t bits) {
  return static_cast<double>((bits >> 11) + 1) * 0x1p-53;
}

// Elements 2i and 2i + 1 are the two halves of one Box-Muller pair.
template <typename T>
void fill_normal(T* values, std::int64_t count, double deviation, std::uint64_t key) {
  for (std::int64_t i = 0; i < count; i += 2) {
    const double radius =
        deviation *
        std::sqrt(-2 * std::log(uniform(random_bits(key, static_cast<std::uint64_t>(i)))));
    const double angle =
        2 * std::numbers::pi * uniform(random_bits(key, static_cast<std::uint64_t>(i) + 1));
    values[i] = static_cast<T>(radius * std::cos(angle));
    if (i + 1 < count) {
      values[i + 1] = static_cast<T>(radius * std::sin(angle));
    }
  }
}

}  // namespace

at::Tensor initial_value(const Init& init, const std::string& name,
                         const std::vector<std::int64_t>& shape, at::ScalarType dtype,
                         std::uint64_t seed) {
  if (init.kind == Init::Kind::constant) {
    return at::full(shape, init.value, dtype);
  }
  // bfloat16 is rounded from float32, so that a master copy in float32 rounds to it.
  const at::ScalarType wide = dtype == at::kDouble ? at::kDouble : at::kFloat;
  const at::Tensor value = at::empty(shape, wide);
  const std::uint64_t key = random_bits(fnv1a(name), seed);
  if (wide == at::kDouble) {
    fill_normal(value.data_ptr<double>(), value.numel(), init.value, key);
  } else {
    fill_normal(value.data_ptr<float>(), value.numel(), init.value, key);
  }
  return value.to(dtype);
}

}  // namespace piper

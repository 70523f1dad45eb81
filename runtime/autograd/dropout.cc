#include "runtime/autograd/dropout.h"

#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>

#include "core/base/hash.h"
#include "core/base/random.h"

namespace piper {
namespace {

using at::Tensor;

constexpr std::int64_t kElementsATask = 16384;

thread_local DropoutContext current;

// One number for all rows; splitmix64 of it and a row is the key of that row's elements.
std::uint64_t key_of(const DropoutContext& context, std::uint64_t place) {
  const std::uint64_t seed = random_bits(fnv1a("dropout"), context.seed);
  return random_bits(random_bits(seed, static_cast<std::uint64_t>(context.step)), place);
}

// Elements whose 53 random bits are below this are cleared.
std::uint64_t threshold_of(double probability) {
  return static_cast<std::uint64_t>(std::ceil(probability * 0x1p53));
}

template <typename T>
void apply_mask(const T* from, T* to, std::int64_t rows, std::int64_t size, std::uint64_t key,
                std::int64_t first_row, double probability) {
  using Wide = at::opmath_type<T>;
  const auto scale = static_cast<Wide>(1 / (1 - probability));
  const std::uint64_t threshold = threshold_of(probability);
  at::parallel_for(0, rows * size, kElementsATask, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end;) {
      const std::int64_t row = i / size;
      const std::int64_t last = std::min(end, (row + 1) * size);
      const std::uint64_t row_key = random_bits(key, static_cast<std::uint64_t>(first_row + row));
      for (; i < last; ++i) {
        const std::uint64_t bits = random_bits(row_key, static_cast<std::uint64_t>(i - row * size));
        to[i] =
            (bits >> 11) < threshold ? T(0) : static_cast<T>(static_cast<Wide>(from[i]) * scale);
      }
    }
  });
}

// The same for a value and for its gradient.
Tensor masked(const Tensor& from, std::uint64_t key, std::int64_t first_row, double probability) {
  Tensor to = at::empty_like(from);
  if (from.is_meta() || from.numel() == 0) {
    return to;
  }
  const std::int64_t rows = from.size(0);
  AT_DISPATCH_FLOATING_TYPES_AND(at::kBFloat16, from.scalar_type(), "dropout", [&] {
    apply_mask(from.const_data_ptr<scalar_t>(), to.mutable_data_ptr<scalar_t>(), rows,
               from.numel() / rows, key, first_row, probability);
  });
  return to;
}

class Dropout : public torch::autograd::Function<Dropout> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x,
                        std::int64_t key, std::int64_t first_row, double probability) {
    context->saved_data["key"] = key;
    context->saved_data["first_row"] = first_row;
    context->saved_data["probability"] = probability;
    return masked(x, static_cast<std::uint64_t>(key), first_row, probability);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const auto& saved = context->saved_data;
    return {masked(gradients[0].contiguous(), static_cast<std::uint64_t>(saved.at("key").toInt()),
                   saved.at("first_row").toInt(), saved.at("probability").toDouble()),
            Tensor(), Tensor(), Tensor()};
  }
};

}  // namespace

Tensor dropout(const Tensor& x, double probability, std::uint64_t place) {
  TORCH_CHECK(probability >= 0 && probability < 1,
              "dropout: expected a probability in [0, 1), got ", probability);
  TORCH_CHECK(x.dim() > 0 && x.is_floating_point(), "dropout: expected floating-point rows, got ",
              x.scalar_type(), x.sizes());
  if (probability == 0 || !current.training) {
    return x;
  }
  return Dropout::apply(x.contiguous(), static_cast<std::int64_t>(key_of(current, place)),
                        current.first_row, probability);
}

InDropoutContext::InDropoutContext(const DropoutContext& context) : before_(current) {
  current = context;
}

InDropoutContext::~InDropoutContext() {
  current = before_;
}

}  // namespace piper

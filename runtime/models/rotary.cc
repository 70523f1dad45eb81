#include "runtime/models/rotary.h"

#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sin.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>
#include <map>
#include <mutex>
#include <vector>

namespace piper {

struct RotaryTables::Table {
  std::vector<float> cosines, sines;  // [positions, half]
};

struct RotaryTables::Cache {
  std::mutex mutex;
  std::map<std::int64_t, std::shared_ptr<const Table>> by_positions;
};

RotaryTables::RotaryTables(std::int64_t head_dim, double theta)
    : half_(head_dim / 2), theta_(theta), cache_(std::make_unique<Cache>()) {}
RotaryTables::~RotaryTables() = default;

std::shared_ptr<const RotaryTables::Table> RotaryTables::table(std::int64_t positions) const {
  const std::lock_guard lock(cache_->mutex);
  std::shared_ptr<const Table>& known = cache_->by_positions[positions];
  if (!known) {
    std::vector<float> angles;
    for (std::int64_t position = 0; position < positions; ++position) {
      for (std::int64_t i = 0; i < half_; ++i) {
        const float exponent = static_cast<float>(2 * i) / static_cast<float>(2 * half_);
        const float frequency = 1 / std::pow(static_cast<float>(theta_), exponent);
        angles.push_back(frequency * static_cast<float>(position));
      }
    }
    // PyTorch's own functions: the C library's differ from them in some last bits.
    const at::Tensor all = at::from_blob(angles.data(), {static_cast<std::int64_t>(angles.size())});
    const auto values = [&](const at::Tensor& tensor) {
      const float* begin = tensor.const_data_ptr<float>();
      return std::vector<float>(begin, begin + tensor.numel());
    };
    known = std::make_shared<const Table>(Table{values(at::cos(all)), values(at::sin(all))});
  }
  return known;
}

namespace {

using at::Tensor;

// (a, b) -> (a cos - b sin, b cos + a sin); `direction` -1 turns back.
template <typename T>
void turn(const T* input, T* output, const RotaryTables::Table& table, std::int64_t rows,
          std::int64_t positions, std::int64_t heads, std::int64_t half,
          at::opmath_type<T> direction) {
  using Wide = at::opmath_type<T>;
  at::parallel_for(0, rows * positions, 64, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t token = begin; token < end; ++token) {
      const float* cosine = table.cosines.data() + (token % positions) * half;
      const float* sine = table.sines.data() + (token % positions) * half;
      for (std::int64_t head = token * heads; head < (token + 1) * heads; ++head) {
        const T* a = input + head * 2 * half;
        const T* b = a + half;
        T* out_a = output + head * 2 * half;
        T* out_b = out_a + half;
        for (std::int64_t i = 0; i < half; ++i) {
          const Wide c = cosine[i];
          const Wide s = direction * sine[i];
          const Wide x = a[i];
          const Wide y = b[i];
          out_a[i] = static_cast<T>(x * c - y * s);
          out_b[i] = static_cast<T>(y * c + x * s);
        }
      }
    }
  });
}

Tensor turned(const Tensor& heads, const RotaryTables& tables, double direction) {
  const Tensor input = heads.contiguous();
  if (input.is_meta()) {
    return at::mul(input, input);  // the same shape and memory
  }
  TORCH_CHECK(input.is_cpu(), "rotary positions: expected a CPU tensor, got ", input.device());
  Tensor output = at::empty_like(input);
  const std::int64_t positions = input.size(1);
  const auto table = tables.table(positions);
  AT_DISPATCH_FLOATING_TYPES_AND(at::kBFloat16, input.scalar_type(), "rotate", [&] {
    turn(input.const_data_ptr<scalar_t>(), output.mutable_data_ptr<scalar_t>(), *table,
         input.size(0), positions, input.size(2), input.size(3) / 2,
         static_cast<at::opmath_type<scalar_t>>(direction));
  });
  return output;
}

class Rotate : public torch::autograd::Function<Rotate> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& heads,
                        const std::shared_ptr<const RotaryTables>& tables) {
    context->saved_data["tables"] = c10::IValue::make_capsule(c10::make_intrusive<Tables>(tables));
    return turned(heads, *tables, 1);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const auto tables = context->saved_data["tables"].toCapsule();
    return {turned(gradients[0], *static_cast<const Tables&>(*tables).tables, -1), Tensor()};
  }

 private:
  struct Tables : torch::CustomClassHolder {
    explicit Tables(std::shared_ptr<const RotaryTables> held) : tables(std::move(held)) {}
    std::shared_ptr<const RotaryTables> tables;
  };
};

}  // namespace

Tensor rotate(const Tensor& heads, const std::shared_ptr<const RotaryTables>& tables) {
  return Rotate::apply(heads, tables);
}

}  // namespace piper

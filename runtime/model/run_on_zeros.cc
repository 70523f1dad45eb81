#include "runtime/model/run_on_zeros.h"

#include <ATen/ExpandUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/zeros.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/bytes.h"
#include "runtime/model/operation_mode.h"

namespace piper {
namespace {

using at::Tensor;

// In the order of its strides, dense: kernels make results in the strides of what they are given,
// and would write beyond one whose elements share memory.
Tensor zeros_for(const Tensor& meta) {
  return at::zeros({meta.numel()}, meta.options().device(at::kCPU))
      .as_strided(meta.sizes(), at::infer_dense_strides(meta.sizes(), meta.strides()));
}

// `value` with each tensor replaced.
c10::IValue map_tensors(const c10::IValue& value,
                        const std::function<Tensor(const Tensor&)>& replace) {
  if (value.isTensor()) {
    return value.toTensor().defined() ? c10::IValue(replace(value.toTensor())) : value;
  }
  if (value.isTensorList()) {
    c10::List<Tensor> replaced;
    for (const Tensor& tensor : value.toTensorVector()) {
      replaced.push_back(tensor.defined() ? replace(tensor) : tensor);
    }
    return replaced;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<Tensor>> replaced;
    for (const std::optional<Tensor>& tensor : value.toOptionalTensorVector()) {
      replaced.push_back(tensor && tensor->defined() ? replace(*tensor) : tensor);
    }
    return replaced;
  }
  return value;
}

// What is made on the meta device is made on the CPU.
c10::IValue on_cpu(const c10::IValue& value) {
  return value.isDevice() && value.toDevice().is_meta() ? c10::IValue(c10::Device(c10::kCPU))
                                                        : value;
}

// The call on zeros finds no meta tensor, and so does not come back here for ever.
class OnceAtATime {
 public:
  explicit OnceAtATime(const c10::OperatorHandle& op) {
    TORCH_CHECK(!is_running_, op.operator_name().name,
                ": expected arguments that zeros can stand for");
    is_running_ = true;
  }
  ~OnceAtATime() { is_running_ = false; }
  OnceAtATime(const OnceAtATime&) = delete;
  OnceAtATime& operator=(const OnceAtATime&) = delete;

 private:
  static thread_local bool is_running_;
};
thread_local bool OnceAtATime::is_running_ = false;

void expect_few(const c10::OperatorHandle& op, const std::vector<c10::IValue>& arguments) {
  std::int64_t bytes = 0;
  std::string inputs;
  for (const c10::IValue& argument : arguments) {
    for_each_tensor(argument, [&](const Tensor& tensor) {
      if (tensor.is_meta()) {
        bytes += tensor.numel() * static_cast<std::int64_t>(tensor.element_size());
        inputs += (inputs.empty() ? "" : ", ") + describe(tensor);
      }
    });
  }
  if (bytes > kMostZeros) {
    throw TooManyZeros("LibTorch has no rule for the shapes of " + op.operator_name().name +
                       ", so it is run on zeros: expected at most " + human_bytes(kMostZeros) +
                       " of them, got " + human_bytes(bytes) + " (" + inputs +
                       "); give the region other operators or smaller tensors, or register a "
                       "kernel of it for the meta device in the model's library");
  }
}

}  // namespace

void run_on_zeros(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::size_t count = op.schema().arguments().size();
  const std::vector<c10::IValue> arguments = torch::jit::last(*stack, count).vec();
  expect_few(op, arguments);
  torch::jit::drop(*stack, count);
  std::vector<std::pair<Tensor, Tensor>> written;  // CPU, and the meta tensor that it stands for
  for (std::size_t i = 0; i < count; ++i) {
    const c10::AliasInfo* alias = op.schema().arguments()[i].alias_info();
    const bool is_written = alias != nullptr && alias->isWrite();
    stack->push_back(map_tensors(on_cpu(arguments[i]), [&](const Tensor& tensor) {
      if (!tensor.is_meta()) {
        return tensor;
      }
      Tensor zeros = zeros_for(tensor);
      if (is_written) {
        written.emplace_back(zeros, tensor);
      }
      return zeros;
    }));
  }

  {
    const OnceAtATime once(op);
    op.callBoxed(stack);
  }

  const std::size_t results = op.schema().returns().size();
  for (std::size_t i = stack->size() - results; i < stack->size(); ++i) {
    (*stack)[i] = map_tensors((*stack)[i], [&](const Tensor& result) {
      for (const auto& [zeros, meta] : written) {
        if (zeros.is_same(result)) {
          if (meta.sizes() != result.sizes()) {
            meta.resize_(result.sizes());
          }
          return meta;
        }
      }
      return at::empty_strided(result.sizes(), result.strides(),
                               result.options().device(at::kMeta));
    });
  }
}

}  // namespace piper

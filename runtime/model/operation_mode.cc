#include "runtime/model/operation_mode.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <torch/library.h>

#include <optional>
#include <sstream>
#include <tuple>
#include <vector>

namespace piper {
namespace {

constexpr c10::DispatchKey kModeKey = c10::DispatchKey::TESTING_ONLY_GenericMode;
constexpr const char* kAttention = "aten::scaled_dot_product_attention";

thread_local OperationObserver* current_observer = nullptr;

// On the meta device attention would be taken apart; the CPU has one kernel for it where head sizes
// agree.
bool is_fused_attention(const std::string& name, c10::ArrayRef<c10::IValue> arguments) {
  if (name != kAttention) {
    return false;
  }
  const at::Tensor& query = arguments[0].toTensor();
  return query.is_meta() && query.dim() == 4 &&
         query.size(-1) == arguments[1].toTensor().size(-1) &&
         query.size(-1) == arguments[2].toTensor().size(-1);
}

// The output, and the logarithms that its backward needs.
std::tuple<at::Tensor, at::Tensor> fused_attention(c10::ArrayRef<c10::IValue> arguments) {
  return at::_scaled_dot_product_flash_attention_for_cpu(
      arguments[0].toTensor(), arguments[1].toTensor(), arguments[2].toTensor(),
      arguments[4].toDouble(), arguments[5].toBool(), arguments[3].toOptional<at::Tensor>(),
      arguments[6].toOptional<double>());
}

void observe(const c10::OperatorHandle& operation, c10::DispatchKeySet keys,
             torch::jit::Stack* stack) {
  const c10::DispatchKeySet below =
      keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kModeKey);
  const std::string& name = operation.operator_name().name;
  const std::size_t count = operation.schema().arguments().size();
  const bool fused = is_fused_attention(name, torch::jit::last(*stack, count));
  if (current_observer == nullptr ||
      (operation.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) && !fused)) {
    operation.redispatchBoxed(below, stack);  // its parts come back here
    return;
  }

  const c10::impl::ExcludeDispatchKeyGuard off(kModeKey);
  // A copy: the call consumes the stack. It must not outlive `after`, which looks at what is still
  // alive.
  std::vector<c10::IValue> arguments = torch::jit::last(*stack, count).vec();
  current_observer->before(operation, arguments);
  std::vector<c10::IValue> hidden;  // results that the model does not get
  if (fused) {
    auto [output, logarithms] = fused_attention(arguments);
    torch::jit::drop(*stack, count);
    stack->emplace_back(std::move(output));
    hidden.emplace_back(std::move(logarithms));
  } else {
    operation.redispatchBoxed(below, stack);
  }
  std::vector<c10::IValue> results =
      torch::jit::last(*stack, operation.schema().returns().size()).vec();
  results.insert(results.end(), hidden.begin(), hidden.end());
  current_observer->after(operation, arguments, results);
}

TORCH_LIBRARY_IMPL(_, TESTING_ONLY_GenericMode, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&observe>());
}

}  // namespace

OperationMode::OperationMode(OperationObserver& observer)
    : outer_(current_observer), include_(kModeKey) {
  current_observer = &observer;
}

OperationMode::~OperationMode() {
  current_observer = outer_;
}

Unobserved::Unobserved() : outer_(current_observer) {
  current_observer = nullptr;
}
Unobserved::~Unobserved() {
  current_observer = outer_;
}

std::string describe(const at::Tensor& tensor) {
  std::ostringstream text;
  text << c10::getDtypeNames(tensor.scalar_type()).first << tensor.sizes();
  return text.str();
}

}  // namespace piper

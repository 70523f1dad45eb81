// Sees every tensor operation that this thread calls while it lives.
//
// It is a boxed fallback on a dispatch key above autograd (TESTING_ONLY_GenericMode, unused in
// stock LibTorch). Composite operations are shown as the ones they consist of; attention is kept
// whole, as the kernel that the CPU runs. Views, factories and in-place operations are seen like
// all others.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <string>

namespace c10 {
class OperatorHandle;
}

namespace piper {

class OperationObserver {
 public:
  virtual ~OperationObserver() = default;

  // `arguments` and `results` are in the order of the operation's schema. What `before` throws
  // reaches the model.
  virtual void before(const c10::OperatorHandle& operation,
                      c10::ArrayRef<c10::IValue> arguments) = 0;
  virtual void after(const c10::OperatorHandle& operation, c10::ArrayRef<c10::IValue> arguments,
                     c10::ArrayRef<c10::IValue> results) = 0;
};

class OperationMode {
 public:
  explicit OperationMode(OperationObserver& observer);
  ~OperationMode();
  OperationMode(const OperationMode&) = delete;
  OperationMode& operator=(const OperationMode&) = delete;

 private:
  OperationObserver* outer_;
  c10::impl::IncludeDispatchKeyGuard include_;
};

// Within an OperationMode: what this thread calls while it lives is not shown.
class Unobserved {
 public:
  Unobserved();
  ~Unobserved();
  Unobserved(const Unobserved&) = delete;
  Unobserved& operator=(const Unobserved&) = delete;

 private:
  OperationObserver* outer_;
};

// Calls `visit` for every defined tensor in `value`, also inside lists.
template <typename Visit>
void for_each_tensor(const c10::IValue& value, Visit&& visit) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) {
      visit(value.toTensor());
    }
  } else if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) {
      for_each_tensor(element, visit);
    }
  }
}

// `float32[2, 128, 256]`
std::string describe(const at::Tensor& tensor);

}  // namespace piper

// What operators return of which LibTorch knows no shapes: they are run on the CPU, on zeros.
#pragma once

#include <ATen/core/stack.h>

#include <cstdint>
#include <stdexcept>

namespace c10 {
class OperatorHandle;
}

namespace piper {

// All tensors that one call gets take at most so many bytes.
inline constexpr std::int64_t kMostZeros = std::int64_t{256} << 20;

class TooManyZeros : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A boxed kernel for the meta device: calls `op` with zeros in place of the meta tensors on the
// stack, and leaves meta tensors in the sizes and strides of the results. Each zero tensor has
// memory of its own for every element, and its dimensions in the order of the meta tensor's
// strides: no element shares memory with another, as those of an expanded tensor do.
// Throws TooManyZeros, and what the operator throws. Any thread.
void run_on_zeros(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace piper

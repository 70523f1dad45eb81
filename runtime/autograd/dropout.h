// Dropout whose masks are functions of (seed, step, place, row of the global batch, element) alone:
// recomputation, micro-batches and layout do not change them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace piper {

// Clears each element of `x` [rows, ...] with this probability, in [0, 1), and multiplies the
// others by 1 / (1 - probability); `x` itself while evaluating, or for 0. `place`: a number of the
// model's choice that none of its other dropouts has. Keeps nothing for the backward: the mask is
// made again. To be called in a region, whose rows are then those of its micro-batch.
at::Tensor dropout(const at::Tensor& x, double probability, std::uint64_t place);

// What a thread's dropouts depend on beside their place.
struct DropoutContext {
  bool training = true;
  std::uint64_t seed = 0;
  std::int64_t step = 0;
  std::int64_t first_row = 0;  // of the micro-batch, in the global batch
};

// Sets this thread's context while it lives. Without one it is the default context: capture sees
// the operations of training.
class InDropoutContext {
 public:
  explicit InDropoutContext(const DropoutContext& context);
  InDropoutContext(const InDropoutContext&) = delete;
  InDropoutContext& operator=(const InDropoutContext&) = delete;
  ~InDropoutContext();

 private:
  DropoutContext before_;
};

}  // namespace piper

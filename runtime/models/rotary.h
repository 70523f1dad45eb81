// Rotary positions (Su et al., arXiv 2104.09864), in the layout of Hugging Face: element i of a
// head turns with i + half.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

namespace piper {

// The cosines and sines of one model: [positions, head_dim / 2]. They are float32 values in every
// dtype, because the published models define them so. The tables grow to the longest sequence seen;
// any thread.
class RotaryTables {
 public:
  RotaryTables(std::int64_t head_dim, double theta);
  ~RotaryTables();

  struct Table;
  std::shared_ptr<const Table> table(std::int64_t positions) const;

 private:
  std::int64_t half_;
  double theta_;
  struct Cache;
  std::unique_ptr<Cache> cache_;
};

// Turns each head of `heads` [rows, positions, heads, head_dim] by its position. Differentiable.
at::Tensor rotate(const at::Tensor& heads, const std::shared_ptr<const RotaryTables>& tables);

}  // namespace piper

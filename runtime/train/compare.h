// Differences between a run and the single-device program, and what is said of them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/config/config.h"

namespace piper {

// max |a - b| / max |b|; where max |b| is 0: 0 if a is exactly 0, else infinite. Not a number
// counts as infinite.
double relative_error(const at::Tensor& a, const at::Tensor& b);

// Same shape, type and bytes.
bool bitwise_equal(const at::Tensor& a, const at::Tensor& b);

// What may differ, by design: reassociation alone.
struct Tolerance {
  double gradient = 0;          // also of loss and norm
  double update = 0;            // of updated weights
  bool same_gradients = false;  // the update is compared with the run's own gradients put in
};
Tolerance tolerance_of(DType dtype, OptimizerName optimizer);

// The largest difference of one thing, and where it was.
struct Difference {
  double error = 0;
  std::uint32_t rank = 0;
  std::int64_t step = 0;

  void add(double candidate, std::uint32_t at_rank, std::int64_t at_step);
};

struct ParameterDifference {
  std::string name;
  Difference gradient, update;
  std::vector<std::string>
      faults;  // what is not a matter of size: replicas that differ, no home, ...
};

struct Comparison {
  Tolerance tolerance;
  Difference loss, norm, evaluation;
  std::vector<ParameterDifference> parameters;

  bool passed() const;
  // A table, worst parameter first, and the verdict as the last line.
  std::string text() const;
};

}  // namespace piper

// A rank's numbers, one element each in float64, where the rank's tensors are, so that tasks need
// not wait for them.
//
//   set by the host before the step   lr_factor, updates, skip (1: no label of the global batch
//                                     counts), and 0 for the rest of a step's
//   by the tasks of the step          skip, norm, finite (grad_norm), loss_sum, tokens (loss_report)
//   kept from step to step            what buffers of these kinds hold, in whichever plan of the
//                                     job runs
//
// The host reads a step's results when its tasks have ended.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace piper {

// What a step answers.
struct StepReport {
  double loss = 0;  // NaN where no label of the global batch counts
  double tokens = 0, norm = 0;
  bool finite = true;
};

class StepScalars {
 public:
  explicit StepScalars(at::Device device = at::kCPU);

  // `count`: of updates, this one among them. `nothing`: no label counts.
  void begin(double factor, std::int64_t count, bool nothing) const;
  // From `all`, or a copy of it.
  static StepReport report(const at::Tensor& host_copy);

  at::Tensor all;  // the others are its elements
  at::Tensor lr_factor, updates, skip;
  at::Tensor norm, finite;
  at::Tensor sums;  // two elements, the next
  at::Tensor loss_sum, tokens;
  at::Tensor loss_sum_buffer, token_count_buffer, grad_norm_buffer;
};

}  // namespace piper

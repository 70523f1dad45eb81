// Op-level liveness: runs the passes over one region on the meta device, and notes what is alive at
// every allocation.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/model/build.h"

namespace piper {

// A product of bfloat16 matrices, or of each of a batch: [rows, inner] times [inner, columns].
struct NarrowProduct {
  std::int64_t rows, inner, columns;
  bool transposed;  // the first operand lies in memory column by column

  bool operator==(const NarrowProduct&) const = default;
};

// Sizes and passes are those of Region and RegionPeaks; positions count inputs and results from 0.
struct RegionLiveness {
  using History = std::vector<std::int64_t>;  // live bytes at each allocation of a pass
  History evaluate, forward, backward, backward_input, backward_weight;
  std::int64_t saved_bytes = 0, pending_bytes = 0;
  std::int64_t kept_bytes = 0;  // of what the region made: kept by the graph, or a result
  std::vector<std::size_t> saved_inputs, saved_results;
  std::vector<std::size_t> pending_inputs, pending_results, pending_gradients;
  std::vector<std::size_t> reread_parameters;  // positions among the given ones
  std::vector<NarrowProduct> products;         // of all passes, in the order in which they ran
  bool complete = true;  // false: an operator of the backward has no rule on the meta device

  bool operator==(const RegionLiveness&) const = default;
};

// `arguments` are meta tensors, of which those that require a gradient get one; `parameters` are
// those that the region uses. The region has been seen to keep the rules of trace_region.
RegionLiveness measure_liveness(const RegionFunction& function, const Tensors& arguments,
                                const Tensors& parameters);

}  // namespace piper

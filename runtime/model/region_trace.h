// Runs one region once on the meta device and notes what it does: parameters, FLOPs, broken rules.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/base/diagnostic.h"
#include "runtime/model/build.h"

namespace piper {

struct RegionTrace {
  std::vector<Value> results;           // dtype and shape (as fixed sizes) of each
  std::vector<bool> has_gradient;       // by result: something in it is differentiated
  std::vector<ParameterId> parameters;  // in order of first use
  std::int64_t flops = 0;
};

// Parameters by the memory that a region's handles see of them; looked up, never walked.
using ParameterStorages = std::unordered_map<const c10::StorageImpl*, ParameterId>;

// `arguments` are meta tensors of the region's own.
// Throws Refused, located at `where`, when the region uses a tensor that is neither an argument,
// nor a parameter, nor its own, writes to one that is not its own, returns one that is not its own,
// or keeps one.
RegionTrace trace_region(const RegionFunction& function, Tensors arguments,
                         const ParameterStorages& parameters,
                         const std::vector<Parameter>& declared, const Location& where);

// While it lives, an operation of this thread that no trace_region runs is refused.
class OutsideRegions {
 public:
  // `last` is the place of the last region, or unknown; it is read when an operation is refused.
  explicit OutsideRegions(const Location& last);
  ~OutsideRegions();

 private:
  struct Observer;
  std::unique_ptr<Observer> observer_;
};

}  // namespace piper

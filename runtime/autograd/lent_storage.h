// Tensors that keep their identity while their memory comes and goes.
//
//   lend: the storage that all of them share points at other memory     take_back: at none
//
// Nothing is copied and no version changes, so what autograd saved sees the memory that is there
// when it looks. Using a tensor while nothing is lent is a fault that LibTorch does not always
// find; the plan's verifier does (plan.materialised).
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <cstdint>
#include <vector>

namespace piper {

// One thread at a time.
class LentStorage {
 public:
  LentStorage(at::ScalarType dtype, at::Device device);

  // A contiguous tensor that begins `offset` elements into the storage.
  at::Tensor tensor(std::int64_t offset, const std::vector<std::int64_t>& shape) const;

  // `memory` is flat, of the storage's type and device, and outlives its use.
  void lend(const at::Tensor& memory);
  // Where `memory` is what is lent.
  void take_back(const at::Tensor& memory);

 private:
  at::ScalarType dtype_;
  at::Device device_;
  c10::Storage storage_;
};

}  // namespace piper

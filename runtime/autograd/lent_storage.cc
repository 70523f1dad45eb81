#include "runtime/autograd/lent_storage.h"

#include <c10/core/StorageImpl.h>

#include "core/base/diagnostic.h"

namespace piper {

LentStorage::LentStorage(at::ScalarType dtype, at::Device device)
    : dtype_(dtype),
      device_(device),
      storage_(c10::Storage::use_byte_size_t(), 0, c10::DataPtr(nullptr, device),
               /*allocator=*/nullptr, /*resizable=*/false) {}

at::Tensor LentStorage::tensor(std::int64_t offset, const std::vector<std::int64_t>& shape) const {
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(storage_),
      c10::DispatchKeySet(at::dtype(dtype_).device(device_).computeDispatchKey()),
      c10::scalarTypeToTypeMeta(dtype_));
  tensor.unsafeGetTensorImpl()->set_storage_offset(offset);
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous(shape);
  return tensor;
}

void LentStorage::lend(const at::Tensor& memory) {
  PIPER_CHECK(
      memory.scalar_type() == dtype_ && memory.device() == device_ && memory.is_contiguous(),
      "memory of another type or device is lent to a storage");
  c10::StorageImpl* const storage = storage_.unsafeGetStorageImpl();
  storage->set_data_ptr_noswap(c10::DataPtr(memory.data_ptr(), device_));
  storage->set_nbytes(memory.nbytes());
}

void LentStorage::take_back(const at::Tensor& memory) {
  if (memory.defined() && storage_.data() == memory.data_ptr()) {
    c10::StorageImpl* const storage = storage_.unsafeGetStorageImpl();
    storage->set_data_ptr_noswap(c10::DataPtr(nullptr, device_));
    storage->set_nbytes(0);
  }
}

}  // namespace piper

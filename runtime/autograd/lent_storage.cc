#include "runtime/autograd/lent_storage.h"

#include <c10/core/StorageImpl.h>

#include "core/base/diagnostic.h"

namespace piper {

LentStorage::LentStorage(at::ScalarType dtype)
    : dtype_(dtype),
      storage_(c10::Storage::use_byte_size_t(), 0, c10::DataPtr(nullptr, c10::kCPU),
               /*allocator=*/nullptr, /*resizable=*/false) {}

at::Tensor LentStorage::tensor(std::int64_t offset, const std::vector<std::int64_t>& shape) const {
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(storage_), c10::DispatchKeySet(c10::DispatchKey::CPU),
      c10::scalarTypeToTypeMeta(dtype_));
  tensor.unsafeGetTensorImpl()->set_storage_offset(offset);
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous(shape);
  return tensor;
}

void LentStorage::lend(const at::Tensor& memory) {
  PIPER_CHECK(memory.scalar_type() == dtype_ && memory.is_contiguous(),
              "memory of another type is lent to a storage");
  c10::StorageImpl* const storage = storage_.unsafeGetStorageImpl();
  storage->set_data_ptr_noswap(c10::DataPtr(memory.data_ptr(), c10::kCPU));
  storage->set_nbytes(memory.nbytes());
}

void LentStorage::take_back(const at::Tensor& memory) {
  if (memory.defined() && storage_.data() == memory.data_ptr()) {
    c10::StorageImpl* const storage = storage_.unsafeGetStorageImpl();
    storage->set_data_ptr_noswap(c10::DataPtr(nullptr, c10::kCPU));
    storage->set_nbytes(0);
  }
}

}  // namespace piper

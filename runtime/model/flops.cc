#include "runtime/model/flops.h"

#include <algorithm>

#include "runtime/model/operation_mode.h"

namespace piper {
namespace {

bool is_fill(const std::string& name) {
  return name.starts_with("aten::empty") || name.starts_with("aten::new_empty") ||
         name.starts_with("aten::zeros") || name.starts_with("aten::ones") ||
         name.starts_with("aten::full") || name == "aten::detach";
}

std::int64_t elementwise(c10::ArrayRef<c10::IValue> arguments, c10::ArrayRef<c10::IValue> results) {
  std::int64_t read = 0;
  std::int64_t written = 0;
  bool is_view = false;
  const auto is_floating = [](const at::Tensor& tensor) {
    return c10::isFloatingType(tensor.scalar_type());
  };
  for (const c10::IValue& argument : arguments) {
    for_each_tensor(argument, [&](const at::Tensor& tensor) {
      read = is_floating(tensor) ? std::max(read, tensor.numel()) : read;
      for (const c10::IValue& result : results) {
        for_each_tensor(result, [&](const at::Tensor& other) {
          is_view |= other.storage().is_alias_of(tensor.storage()) && !other.is_same(tensor);
        });
      }
    });
  }
  for (const c10::IValue& result : results) {
    for_each_tensor(result, [&](const at::Tensor& tensor) {
      written = is_floating(tensor) ? std::max(written, tensor.numel()) : written;
    });
  }
  return is_view || written == 0 || read == 0 ? 0 : std::max(read, written);
}

}  // namespace

std::int64_t flops(const std::string& name, c10::ArrayRef<c10::IValue> arguments,
                   c10::ArrayRef<c10::IValue> results) {
  const auto size = [&](std::size_t argument, std::int64_t dim) {
    return arguments[argument].toTensor().size(dim);
  };
  if (name == "aten::mm") {
    return 2 * size(0, 0) * size(0, 1) * size(1, 1);
  }
  if (name == "aten::addmm") {
    return 2 * size(1, 0) * size(1, 1) * size(2, 1);
  }
  if (name == "aten::bmm") {
    return 2 * size(0, 0) * size(0, 1) * size(0, 2) * size(1, 2);
  }
  if (name == "aten::baddbmm") {
    return 2 * size(1, 0) * size(1, 1) * size(1, 2) * size(2, 2);
  }
  if (name == "aten::scaled_dot_product_attention") {
    const std::int64_t full = 4 * size(0, 0) * size(0, 1) * size(0, 2) * size(1, 2) * size(0, 3);
    return arguments[5].toBool() ? full / 2 : full;
  }
  if (name == "aten::convolution") {
    const at::Tensor& weight = arguments[1].toTensor();
    return 2 * results[0].toTensor().numel() * (weight.numel() / weight.size(0));
  }
  if (is_fill(name)) {
    return 0;
  }
  // An embedding reads as many elements as it writes, whatever the size of its table.
  if (name == "aten::embedding" || name == "aten::index_select") {
    return 0;
  }
  return elementwise(arguments, results);
}

}  // namespace piper

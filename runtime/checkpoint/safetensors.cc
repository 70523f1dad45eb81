#include "runtime/checkpoint/safetensors.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>

#include <fstream>
#include <utility>

#include "runtime/model/build.h"

namespace piper {
namespace {

Expected<at::ScalarType> stored_type(const std::string& name, const StoredTensor& stored) {
  constexpr std::pair<const char*, at::ScalarType> kTypes[] = {
      {"F64", at::kDouble}, {"F32", at::kFloat}, {"F16", at::kHalf}, {"BF16", at::kBFloat16},
      {"I64", at::kLong},   {"I32", at::kInt},   {"U8", at::kByte},  {"BOOL", at::kBool}};
  for (const auto& [known, type] : kTypes) {
    if (stored.dtype == known) {
      return type;
    }
  }
  return fail(error("checkpoint.dtype",
                    "tensor '" + name + "': cannot read elements of type " + stored.dtype,
                    {stored.file}));
}

}  // namespace

Expected<at::Tensor> load_tensor(const std::string& name, const StoredTensor& stored) {
  PIPER_ASSIGN(const at::ScalarType type, stored_type(name, stored));
  at::Tensor tensor = at::empty(stored.shape, type);
  std::ifstream stream(stored.file, std::ios::binary);
  stream.seekg(static_cast<std::streamoff>(stored.begin));
  if (!stream.read(static_cast<char*>(tensor.mutable_data_ptr()),
                   static_cast<std::streamsize>(stored.end - stored.begin))) {
    return fail(error("checkpoint.safetensors", "tensor '" + name + "': cannot read its bytes",
                      {stored.file}));
  }
  return tensor;
}

Status check_finite(const std::string& name, const at::Tensor& tensor, const std::string& file) {
  const at::Tensor finite = at::isfinite(tensor);
  if (finite.all().item<bool>()) {
    return {};
  }
  const at::Tensor first = finite.logical_not().nonzero()[0];
  std::string index;
  at::Tensor element = tensor;
  for (std::int64_t axis = 0; axis < first.size(0); ++axis) {
    const auto at = first[axis].item<std::int64_t>();
    index += (index.empty() ? "" : ", ") + std::to_string(at);
    element = element[at];
  }
  return fail(error("checkpoint.not_finite",
                    "tensor '" + name + "' at [" + index + "]: expected finite numbers, got " +
                        std::to_string(element.item<double>()),
                    {file}));
}

Expected<std::map<std::string, at::Tensor>> load_weights(const std::string& path,
                                                         const ModelGraph& model) {
  PIPER_ASSIGN(const StoredTensors stored, read_safetensors_headers(path));
  PIPER_TRY(check_stored(stored, model, path));
  std::map<std::string, at::Tensor> weights;
  for (const Parameter& parameter : model.parameters) {
    const StoredTensor& entry = stored.at(parameter.name);
    PIPER_ASSIGN(const at::Tensor tensor, load_tensor(parameter.name, entry));
    at::Tensor weight = tensor.to(to_torch(gradient_dtype(parameter.dtype)));
    PIPER_TRY(check_finite(parameter.name, weight, entry.file));
    weights.emplace(parameter.name, std::move(weight));
  }
  return weights;
}

Expected<std::map<std::string, at::Tensor>> load_tensors(const std::string& path) {
  PIPER_ASSIGN(const StoredTensors stored, read_safetensors_headers(path));
  std::map<std::string, at::Tensor> tensors;
  for (const auto& [name, entry] : stored) {
    PIPER_ASSIGN(at::Tensor tensor, load_tensor(name, entry));
    tensors.emplace(name, std::move(tensor));
  }
  return tensors;
}

Status write_tensors(OutputFile& file, const std::map<std::string, at::Tensor>& tensors) {
  StoredTensors entries;
  std::uint64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    StoredTensor entry;
    entry.dtype = safetensors_name(from_torch(tensor.scalar_type()));
    entry.shape = tensor.sizes().vec();
    entry.begin = offset;
    entry.end = offset += tensor.nbytes();
    entries.emplace(name, std::move(entry));
  }
  const std::string header = print_safetensors_header(entries);
  const std::uint64_t length = header.size();
  PIPER_TRY(file.write(&length, sizeof length));
  PIPER_TRY(file.write(header));
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor dense = tensor.detach().cpu().contiguous();
    PIPER_TRY(file.write(dense.const_data_ptr(), dense.nbytes()));
  }
  return {};
}

Status save_weights(const std::string& path, const std::map<std::string, at::Tensor>& tensors) {
  PIPER_ASSIGN(OutputFile file, OutputFile::create(path, {.code = "checkpoint.write"}));
  PIPER_TRY(write_tensors(file, tensors));
  return file.commit();
}

}  // namespace piper

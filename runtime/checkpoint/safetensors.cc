#include "runtime/checkpoint/safetensors.h"

#include <ATen/ops/empty.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include "runtime/checkpoint/safetensors_header.h"
#include "runtime/model/build.h"

namespace piper {
namespace {

namespace fs = std::filesystem;

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

Expected<at::Tensor> read_tensor(const std::string& name, const StoredTensor& stored) {
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

}  // namespace

Expected<std::map<std::string, at::Tensor>> load_weights(const std::string& path,
                                                         const ModelGraph& model) {
  PIPER_ASSIGN(const StoredTensors stored, read_safetensors_headers(path));
  PIPER_TRY(check_stored(stored, model, path));
  std::map<std::string, at::Tensor> weights;
  for (const Parameter& parameter : model.parameters) {
    PIPER_ASSIGN(const at::Tensor tensor, read_tensor(parameter.name, stored.at(parameter.name)));
    weights.emplace(parameter.name, tensor.to(to_torch(gradient_dtype(parameter.dtype))));
  }
  return weights;
}

Expected<std::map<std::string, at::Tensor>> load_tensors(const std::string& path) {
  PIPER_ASSIGN(const StoredTensors stored, read_safetensors_headers(path));
  std::map<std::string, at::Tensor> tensors;
  for (const auto& [name, entry] : stored) {
    PIPER_ASSIGN(at::Tensor tensor, read_tensor(name, entry));
    tensors.emplace(name, std::move(tensor));
  }
  return tensors;
}

Status save_weights(const std::string& path, const std::map<std::string, at::Tensor>& tensors) {
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

  std::error_code failure;
  const fs::path target(path);
  if (target.has_parent_path()) {
    fs::create_directories(target.parent_path(), failure);
  }
  const std::string unfinished = path + ".part";
  std::ofstream stream(unfinished, std::ios::binary | std::ios::trunc);
  stream.write(reinterpret_cast<const char*>(&length), sizeof(length));
  stream.write(header.data(), static_cast<std::streamsize>(length));
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor dense = tensor.detach().cpu().contiguous();
    stream.write(static_cast<const char*>(dense.const_data_ptr()),
                 static_cast<std::streamsize>(dense.nbytes()));
  }
  stream.close();
  if (stream) {
    fs::rename(unfinished, target, failure);
  }
  if (!stream || failure) {
    std::error_code ignored;
    fs::remove(unfinished, ignored);
    return fail(error("checkpoint.write", "cannot write the file", {path}));
  }
  return {};
}

}  // namespace piper

// Tensors to and from .safetensors files.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

#include "core/base/diagnostic.h"
#include "core/base/output_file.h"
#include "core/ir/model_graph.h"
#include "runtime/checkpoint/safetensors_header.h"

namespace piper {

// The model's parameters by name, on the CPU, in the type of their master copies (gradient_dtype).
// `path` as for read_safetensors_headers; tensors that the model lacks are left alone. Refuses
// elements that are not finite: checkpoint.not_finite.
Expected<std::map<std::string, at::Tensor>> load_weights(const std::string& path,
                                                         const ModelGraph& model);

// Every tensor of a file or folder, as it is stored.
Expected<std::map<std::string, at::Tensor>> load_tensors(const std::string& path);

// One of them, as it is stored.
Expected<at::Tensor> load_tensor(const std::string& name, const StoredTensor& stored);

// That every element is a number: `tensor 'w' at [2, 5]: expected finite numbers, got nan`.
Status check_finite(const std::string& name, const at::Tensor& tensor, const std::string& file);

// One file with the tensors in order of name, in their own types.
Status write_tensors(OutputFile& file, const std::map<std::string, at::Tensor>& tensors);

// The same as a whole. Makes the folder; a failure leaves what was there.
Status save_weights(const std::string& path, const std::map<std::string, at::Tensor>& tensors);

}  // namespace piper

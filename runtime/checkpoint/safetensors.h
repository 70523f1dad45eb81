// Tensors to and from .safetensors files.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

#include "core/base/diagnostic.h"
#include "core/ir/model_graph.h"

namespace piper {

// The model's parameters by name, on the CPU, in the type of their master copies (gradient_dtype).
// `path` as for read_safetensors_headers; tensors that the model lacks are left alone.
Expected<std::map<std::string, at::Tensor>> load_weights(const std::string& path,
                                                         const ModelGraph& model);

// Every tensor of a file or folder, as it is stored.
Expected<std::map<std::string, at::Tensor>> load_tensors(const std::string& path);

// One file with the tensors in order of name, in their own types. Written beside `path` and then
// renamed, so that a failure leaves what was there. Makes the folder.
Status save_weights(const std::string& path, const std::map<std::string, at::Tensor>& tensors);

}  // namespace piper

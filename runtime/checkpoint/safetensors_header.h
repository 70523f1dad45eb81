// What is in a .safetensors file: names, element types, shapes and places. No LibTorch, and no
// tensor is read.
//
// Format: 8 bytes (little endian) length of a JSON header, the header, the bytes of the tensors.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/ir/model_graph.h"

namespace piper {

struct StoredTensor {
  std::string dtype;  // as the file says: "F32"
  std::vector<std::int64_t> shape;
  std::string file;
  std::uint64_t begin = 0, end = 0;  // bytes in the file
};
using StoredTensors = std::map<std::string, StoredTensor>;  // by name

// `path`: a file, or a folder with model.safetensors or model.safetensors.index.json (several
// files). Refuses headers that do not fit their file: too long, truncated, offsets outside it or
// overlapping, sizes that contradict a shape.
Expected<StoredTensors> read_safetensors_headers(const std::string& path);

// That every parameter of the model is there, in its shape and in a type that can be converted.
Status check_stored(const StoredTensors& stored, const ModelGraph& model, const std::string& path);

// The header of a file that holds `tensors` in the order of their offsets (from 0), padded to a
// multiple of 8 bytes.
std::string print_safetensors_header(const StoredTensors& tensors);

// "F32" and so on; "" for a type that the format lacks.
std::string_view safetensors_name(DType dtype);

}  // namespace piper

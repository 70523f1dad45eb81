// Tensors of a checkpoint that the job's model has no parameter for.
#pragma once

#include <string>

#include "core/base/diagnostic.h"
#include "core/config/config.h"
#include "core/ir/model_graph.h"
#include "runtime/checkpoint/safetensors_header.h"

namespace piper {

// A remark that names them, or none. Where a config.json stands beside the weights (`described`) it
// says what the model is, and transformers leaves them out too. Where there is none, the tensors
// say it, and two kinds are refused with checkpoint.extra_tensor, since the numbers would be of
// another model: further layers, unless the job has model.layers; and what belongs to one of the
// model's own layers (a bias, a scale). An output layer in the file of a tied model is refused with
// checkpoint.untied_head, unless it equals the embedding or the job has model.tied.
Expected<Diagnostics> check_unused_tensors(const Config& config, const ModelGraph& model,
                                           const StoredTensors& stored, const std::string& path,
                                           bool described);

}  // namespace piper

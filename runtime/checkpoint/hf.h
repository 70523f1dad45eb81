// Hugging Face folders: config.json and model.safetensors.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

#include "core/base/diagnostic.h"
#include "core/config/config.h"
#include "core/ir/model_graph.h"

namespace piper {

// Where [checkpoint] initial_load_in_hf reads from: initial_load_path, else [model] hf_assets_path.
// "" when the job loads nothing.
std::string initial_weights_path(const Config& config);

// Before any thread starts: that the weights a job names are there and fit the model. Reads headers
// alone.
Status check_weights(const Config& config, const ModelGraph& model);

// Writes `folder`/model.safetensors in [training] dtype, and config.json where the model has one:
// the fields of the job's own config.json that we do not know stay. `tensors` by parameter name,
// one for each.
Status save_hf(const std::string& folder, const Config& config, const ModelGraph& model,
               const std::map<std::string, at::Tensor>& tensors);

}  // namespace piper

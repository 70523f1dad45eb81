// A job's Hugging Face folders: where its weights come from, and what it saves.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

#include "core/base/diagnostic.h"
#include "core/config/config.h"
#include "core/ir/model_graph.h"
#include "runtime/checkpoint/model_folder.h"

namespace piper {

// Where the weights are read from: initial_load_path, else [model] hf_assets_path. "" when the job
// loads nothing.
std::string initial_weights_path(const Config& config);

// The folder that may describe those weights: `path`, or that of a file model.safetensors. "" where
// there is none.
std::string folder_of_weights(const std::string& path);

// The model that Piper brings, which has a config.json.
bool is_qwen3(const Config& config);

// What a saved folder has beside weights: config.json of the model that the job trains, and the
// tokenizer files and generation_config.json of the folder that it starts from. To be read before
// the first step, since that folder may be another one by the last.
Expected<ModelFiles> read_model_files(const Config& config);

// Puts the model into `folder`, weights in [training] dtype, as replace_model does. `tensors` by
// parameter name, one for each.
Status save_hf(const std::string& folder, const Config& config, const ModelGraph& model,
               const ModelFiles& files, const std::map<std::string, at::Tensor>& tensors);

}  // namespace piper

// Weights and gradients between files and the ranks of an engine. Between steps only.
#pragma once

#include <string>

#include "core/base/diagnostic.h"
#include "core/runtime_interface.h"
#include "runtime/checkpoint/model_folder.h"
#include "runtime/exec/engine.h"
#include "runtime/train/reference.h"

namespace piper {

// Puts the job's initial weights ([checkpoint] initial_load_in_hf) on every home, and into
// `reference` where there is one; nothing where the job loads none.
Status load_initial_weights(const Job& job, Engine& engine, Reference* reference = nullptr);

// Writes the weights to `folder`, in the format of [checkpoint] last_save_path, with `files` as
// they were at the start.
Status save_last_weights(const Job& job, const Engine& engine, const ModelFiles& files,
                         const std::string& folder);

// Writes the reduced, unclipped gradients of the last training step under their parameters' names.
// Frozen parameters have none.
Status save_gradients(const Job& job, const Engine& engine, const std::string& file);

}  // namespace piper

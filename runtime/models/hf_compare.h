// The model that a job uses beside the one that a Hugging Face folder says it is.
#pragma once

#include <string>

#include "core/base/diagnostic.h"
#include "core/config/config.h"
#include "runtime/models/hf_config.h"
#include "runtime/models/qwen3_config.h"

namespace piper {

// A remark for each difference that a key of [model] says; model.other_folder, at `where`, where
// there are others, since the numbers would not be the folder's.
Expected<Diagnostics> compare_with_folder(const Config& config, const Qwen3Config& used,
                                          const HfConfig& folder, const Location& where);

// "expected `what`, got 'path'"; a name on the Hugging Face Hub is answered with how to fetch it.
Diagnostic missing_folder(const std::string& path, const std::string& what, const std::string& code,
                          const Location& where);

}  // namespace piper

// Hugging Face's config.json of a Qwen3 model: what it says, and what is written for a model that
// was trained. The keys are in hf_keys.h. No LibTorch.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/base/diagnostic.h"
#include "core/base/dtype.h"
#include "runtime/models/qwen3_config.h"

namespace piper {

struct HfConfig {
  std::string file;                       // FOLDER/config.json
  std::string text;                       // all of it
  Qwen3Config model;                      // where a key is missing: as transformers has it
  std::optional<std::int64_t> positions;  // max_position_embeddings
  std::optional<Location> quantized;      // where quantization_config is
  std::map<std::string, Location, std::less<>> keys;  // of the outermost object
  Diagnostics remarks;  // what does not change the loss, and may surprise

  Location where(std::string_view key) const;  // the file, where it lacks the key
};

bool has_hf_config(const std::string& folder);

// Refuses what is no JSON, every key that the model does not do or that is not known, and values of
// another type: model.hf_config, each with its line.
Expected<HfConfig> read_hf_config(const std::string& folder);

// `text`: the config.json that the job started from, or "". Its keys that Piper does not use stay
// as they are; the others say what was trained, in every spelling:
//     "num_hidden_layers": 2, "layer_types": [two], "dtype": "bfloat16", "quantization_config": {}
//     ->  for a float32 model of one layer
//     "num_hidden_layers": 1, "layer_types": [one], "dtype": "float32"
// `seq_len`: max_position_embeddings is at least that.
std::string print_hf_config(const Qwen3Config& model, DType dtype, std::int64_t seq_len,
                            const std::string& text);

}  // namespace piper

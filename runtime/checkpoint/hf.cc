#include "runtime/checkpoint/hf.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "runtime/checkpoint/safetensors.h"
#include "runtime/checkpoint/safetensors_header.h"
#include "runtime/model/build.h"
#include "runtime/models/qwen3_config.h"

namespace piper {
namespace {

namespace fs = std::filesystem;

Status write_config_json(const fs::path& path, const Config& config) {
  PIPER_ASSIGN(const Qwen3Config model, resolve_qwen3(config));
  std::string source;
  if (!config.model.hf_assets_path.empty()) {
    std::ifstream stream(fs::path(config.model.hf_assets_path) / "config.json", std::ios::binary);
    source.assign(std::istreambuf_iterator<char>(stream), {});
  }
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream << qwen3_config_json(model, config.training.dtype, source);
  stream.close();
  if (!stream) {
    return fail(error("checkpoint.write", "cannot write the file", {path.string()}));
  }
  return {};
}

}  // namespace

std::string initial_weights_path(const Config& config) {
  if (!config.checkpoint.loads_hf()) {
    return "";
  }
  return !config.checkpoint.initial_load_path.empty() ? config.checkpoint.initial_load_path
                                                      : config.model.hf_assets_path;
}

Status check_weights(const Config& config, const ModelGraph& model) {
  const std::string path = initial_weights_path(config);
  if (path.empty()) {
    return {};
  }
  std::error_code failure;
  if (!fs::exists(path, failure)) {
    const bool named = !config.checkpoint.initial_load_path.empty();
    return fail(error(
        "checkpoint.initial_load_path",
        "expected a .safetensors file or a folder with one, got '" + path + "', which is not there",
        config.where(named ? "checkpoint.initial_load_path" : "model.hf_assets_path")));
  }
  PIPER_ASSIGN(const StoredTensors stored, read_safetensors_headers(path));
  return check_stored(stored, model, path);
}

Status save_hf(const std::string& folder, const Config& config, const ModelGraph& model,
               const std::map<std::string, at::Tensor>& tensors) {
  std::map<std::string, at::Tensor> narrowed;
  for (const Parameter& parameter : model.parameters) {
    const auto found = tensors.find(parameter.name);
    PIPER_CHECK(found != tensors.end(), "no tensor for parameter " + parameter.name);
    narrowed.emplace(parameter.name, found->second.to(to_torch(parameter.dtype)));
  }
  PIPER_TRY(save_weights((fs::path(folder) / "model.safetensors").string(), narrowed));
  if (config.model.library.empty() && config.model.name == "qwen3") {
    PIPER_TRY(write_config_json(fs::path(folder) / "config.json", config));
  }
  return {};
}

}  // namespace piper

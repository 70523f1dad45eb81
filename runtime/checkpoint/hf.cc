#include "runtime/checkpoint/hf.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "runtime/checkpoint/safetensors.h"
#include "runtime/model/build.h"
#include "runtime/models/hf_config.h"
#include "runtime/models/qwen3_config.h"

namespace piper {
namespace {

namespace fs = std::filesystem;

std::map<std::string, std::string> read_companions(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const std::string& name : companion_names()) {
    std::ifstream stream(fs::path(folder) / name, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(stream), {}};
    if (stream) {
      files.emplace(name, std::move(text));
    }
  }
  return files;
}

}  // namespace

std::string initial_weights_path(const Config& config) {
  if (!config.checkpoint.loads_hf()) {
    return "";
  }
  return !config.checkpoint.initial_load_path.empty() ? config.checkpoint.initial_load_path
                                                      : config.model.hf_assets_path;
}

std::string folder_of_weights(const std::string& path) {
  std::error_code failure;
  if (fs::is_directory(path, failure)) {
    return path;
  }
  const fs::path file(path);
  return file.filename() != "model.safetensors" ? ""
         : file.has_parent_path()               ? file.parent_path().string()
                                                : ".";
}

bool is_qwen3(const Config& config) {
  return config.model.library.empty() && config.model.name == "qwen3";
}

Expected<ModelFiles> read_model_files(const Config& config) {
  const std::string& assets = config.model.hf_assets_path;
  const std::string source =
      !assets.empty() ? assets : folder_of_weights(initial_weights_path(config));
  ModelFiles files;
  files.companions = source.empty() ? decltype(files.companions)() : read_companions(source);
  if (is_qwen3(config)) {
    PIPER_ASSIGN(const Qwen3Config model, resolve_qwen3(config));
    std::string text;
    if (!source.empty() && has_hf_config(source)) {
      PIPER_ASSIGN(HfConfig described, read_hf_config(source));
      text = std::move(described.text);
    }
    files.config = print_hf_config(model, config.training.dtype, config.training.seq_len, text);
  }
  return files;
}

Status save_hf(const std::string& folder, const Config& config, const ModelGraph& model,
               const ModelFiles& files, const std::map<std::string, at::Tensor>& tensors) {
  std::map<std::string, at::Tensor> narrowed;
  for (const Parameter& parameter : model.parameters) {
    const auto found = tensors.find(parameter.name);
    PIPER_CHECK(found != tensors.end(), "no tensor for parameter " + parameter.name);
    narrowed.emplace(parameter.name, found->second.to(to_torch(parameter.dtype)));
  }
  return replace_model(
      folder, files, [&](OutputFile& file) { return write_tensors(file, narrowed); },
      {.code = "checkpoint.write", .where = config.where("checkpoint.last_save_path")});
}

}  // namespace piper

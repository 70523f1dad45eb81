#include "runtime/checkpoint/check_weights.h"

#include <chrono>
#include <filesystem>
#include <optional>
#include <utility>

#include "runtime/checkpoint/hf.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/checkpoint/unused_tensors.h"
#include "runtime/models/hf_compare.h"
#include "runtime/models/hf_config.h"
#include "runtime/models/qwen3_config.h"

namespace piper {
namespace {

namespace fs = std::filesystem;
using std::chrono::steady_clock;

constexpr std::chrono::seconds kQuickLook{2};
constexpr std::int64_t kBytesVocab = 257;  // of text: 256 bytes and an end of document

bool has_weights(const std::string& folder) {
  std::error_code failure;
  return fs::exists(fs::path(folder) / "model.safetensors", failure) ||
         fs::exists(fs::path(folder) / "model.safetensors.index.json", failure);
}

void append(Diagnostics& all, const Diagnostics& more) {
  all.insert(all.end(), more.begin(), more.end());
}

class Check {
 public:
  Check(const Config& config, const ModelGraph& model, bool whole)
      : config_(config), model_(model), whole_(whole), path_(initial_weights_path(config)) {}

  Expected<CheckReport> go() {
    std::error_code failure;
    const std::string& assets = config_.model.hf_assets_path;
    if (!assets.empty() && !fs::exists(assets, failure)) {
      return fail(missing_folder(assets, "a folder", "model.hf_assets_path",
                                 config_.where("model.hf_assets_path")));
    }
    const bool by_path = !config_.checkpoint.initial_load_path.empty();
    const char* key = by_path ? "checkpoint.initial_load_path" : "model.hf_assets_path";
    if (!path_.empty() && !fs::exists(path_, failure)) {
      return fail(missing_folder(path_, "a .safetensors file or a folder with one",
                                 "checkpoint.initial_load_path", config_.where(key)));
    }
    if (path_.empty()) {
      remark_random_weights();
    }
    const std::string beside = folder_of_weights(path_);
    if (is_qwen3(config_)) {
      PIPER_ASSIGN(const Qwen3Config used, resolve_qwen3(config_));
      if (!assets.empty() && has_hf_config(assets)) {
        PIPER_TRY(compare(used, assets, "model.hf_assets_path"));
      }
      if (!beside.empty() && !fs::equivalent(beside, assets, failure) && has_hf_config(beside)) {
        PIPER_TRY(compare(used, beside, key));
      }
      remark_bytes(used);
    }
    if (!path_.empty()) {
      PIPER_TRY(check_tensors(!beside.empty() && has_hf_config(beside)));
    }
    return std::move(report_);
  }

 private:
  void remark(const char* code, std::string message, const char* key) {
    report_.remarks.push_back(warning(code, std::move(message), config_.where(key)));
  }

  void remark_random_weights() {
    const std::string& assets = config_.model.hf_assets_path;
    if (!assets.empty() && has_weights(assets)) {
      remark("checkpoint.random_weights",
             "the weights start at random and not as those in '" + assets +
                 "', which checkpoint.initial_load_in_hf = true loads",
             "model.hf_assets_path");
    }
  }

  // What `folder` says of itself, `key` having named it.
  Status compare(const Qwen3Config& used, const std::string& folder, const char* key) {
    PIPER_ASSIGN(HfConfig described, read_hf_config(folder));
    append(report_.remarks, described.remarks);
    PIPER_ASSIGN(const Diagnostics differences,
                 compare_with_folder(config_, used, described, config_.where(key)));
    append(report_.remarks, differences);
    if (described.quantized) {
      const bool loaded = folder == folder_of_weights(path_);
      Diagnostic said =
          warning("model.hf_config",
                  loaded ? "'quantization_config': expected none, got one: its weights would have "
                           "to be scaled back, which is not done"
                         : "'quantization_config' is not for the weights that are trained",
                  *described.quantized);
      if (loaded) {
        said.severity = Severity::error;
        return fail(std::move(said));
      }
      report_.remarks.push_back(std::move(said));
    }
    if (described.positions && config_.training.seq_len > *described.positions) {
      remark("training.seq_len",
             "training.seq_len: " + std::to_string(config_.training.seq_len) +
                 " is beyond max_position_embeddings = " + std::to_string(*described.positions) +
                 " of " + described.file,
             "training.seq_len");
    }
    return {};
  }

  void remark_bytes(const Qwen3Config& used) {
    if (!path_.empty() && config_.training.dataset == Dataset::text && used.vocab != kBytesVocab) {
      remark("training.dataset",
             "training.dataset: \"text\" gives bytes (0 to 255) and ends of documents (256), which "
             "are not the tokens of loaded weights with a vocabulary of " +
                 std::to_string(used.vocab) + "; tokenise the text and use \"jsonl\"",
             "training.dataset");
    }
  }

  Status check_tensors(bool described) {
    PIPER_ASSIGN(const StoredTensors stored, read_safetensors_headers(path_));
    PIPER_TRY(check_stored(stored, model_, path_));
    PIPER_ASSIGN(const Diagnostics unused,
                 check_unused_tensors(config_, model_, stored, path_, described));
    append(report_.remarks, unused);
    return check_numbers(stored);
  }

  Status check_numbers(const StoredTensors& stored) {
    const auto end = steady_clock::now() + kQuickLook;
    for (std::size_t i = 0; i < model_.parameters.size(); ++i) {
      if (!whole_ && steady_clock::now() > end) {
        report_.lines.push_back("weights: looked at " + std::to_string(i) + " of " +
                                std::to_string(model_.parameters.size()) + " tensors");
        break;
      }
      const std::string& name = model_.parameters[i].name;
      PIPER_ASSIGN(const at::Tensor tensor, load_tensor(name, stored.at(name)));
      PIPER_TRY(check_finite(name, tensor, stored.at(name).file));
    }
    return {};
  }

  const Config& config_;
  const ModelGraph& model_;
  bool whole_;
  std::string path_;  // of the weights; "" = none are loaded
  CheckReport report_;
};

}  // namespace

Expected<CheckReport> check_weights(const Config& config, const ModelGraph& model, bool whole) {
  return Check(config, model, whole).go();
}

}  // namespace piper

#include "runtime/models/hf_compare.h"

#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

namespace piper {
namespace {

struct Difference {
  std::string key;  // of [model]
  std::string ours, theirs;
  bool said;  // the job has the key
};

std::vector<Difference> differences(const ModelConfig& keys, const Qwen3Config& used,
                                    const Qwen3Config& folder) {
  std::vector<Difference> all;
  const auto compare = [&](const char* key, const auto& ours, const auto& theirs, bool said) {
    if (ours != theirs) {
      all.push_back({key, nlohmann::json(ours).dump(), nlohmann::json(theirs).dump(), said});
    }
  };
  compare("layers", used.layers, folder.layers, keys.layers != 0);
  compare("dim", used.dim, folder.dim, keys.dim != 0);
  compare("heads", used.heads, folder.heads, keys.heads != 0);
  compare("kv_heads", used.kv_heads, folder.kv_heads, keys.kv_heads != 0);
  compare("head_dim", used.head_dim, folder.head_dim, keys.head_dim != 0);
  compare("ffn", used.ffn, folder.ffn, keys.ffn != 0);
  compare("vocab", used.vocab, folder.vocab, keys.vocab != 0);
  compare("tied", used.tied, folder.tied, keys.tied.has_value());
  compare("rope_theta", used.rope_theta, folder.rope_theta, keys.rope_theta != 0);
  compare("norm_eps", used.norm_eps, folder.norm_eps, keys.norm_eps != 0);
  return all;
}

// "Qwen/Qwen3-0.6B": two names that are no path.
bool is_hub_name(const std::string& path) {
  const std::size_t slash = path.find('/');
  const auto name = [](const std::string& text) {
    bool fits = !text.empty() && std::isalnum(static_cast<unsigned char>(text[0])) != 0;
    for (const char c : text) {
      fits = fits &&
             (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-');
    }
    return fits;
  };
  std::error_code failure;
  return slash != std::string::npos && name(path.substr(0, slash)) &&
         name(path.substr(slash + 1)) && !std::filesystem::exists(path.substr(0, slash), failure);
}

}  // namespace

Expected<Diagnostics> compare_with_folder(const Config& config, const Qwen3Config& used,
                                          const HfConfig& folder, const Location& where) {
  Diagnostics remarks;
  std::string unsaid, first;
  for (const Difference& one : differences(config.model, used, folder.model)) {
    const std::string key = "model." + one.key;
    if (one.said) {
      remarks.push_back(
          warning("model.other_folder",
                  key + ": " + one.ours + ", where " + folder.file + " has " + one.theirs,
                  config.where(key)));
      continue;
    }
    unsaid +=
        (unsaid.empty() ? "" : ", ") + one.key + " = " + one.ours + " (there " + one.theirs + ")";
    first = first.empty() ? key + " = " + one.ours : first;
  }
  if (unsaid.empty()) {
    return remarks;
  }
  const std::string& flavor = config.model.flavor;
  Diagnostic mistake =
      error("model.other_folder",
            "expected the model of " + folder.file + ", got " +
                (flavor.empty() ? "the job's" : "flavor '" + flavor + "'") + " with " + unsaid,
            where);
  mistake.note(
      "model.hf_assets_path without a flavor takes the folder's; a key says that another "
      "is meant: " +
      first);
  return fail(std::move(mistake));
}

Diagnostic missing_folder(const std::string& path, const std::string& what, const std::string& code,
                          const Location& where) {
  std::error_code failure;
  const bool there = std::filesystem::exists(path, failure);
  Diagnostic mistake = error(
      code, "expected " + what + ", got '" + path + "'" + (there ? "" : ", which is not there"),
      where);
  if (!there && is_hub_name(path)) {
    const std::string folder = path.substr(path.find('/') + 1);
    mistake.note("a model of the Hugging Face Hub is fetched with `hf download " + path +
                 " --local-dir " + folder +
                 "` (`huggingface-cli download ...` before version 1 of "
                 "huggingface_hub), and '" +
                 folder + "' named here");
  }
  return mistake;
}

}  // namespace piper

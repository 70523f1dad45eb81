#include "runtime/models/qwen3_config.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>
#include <utility>

#include "core/config/spelling.h"
#include "runtime/models/hf_compare.h"
#include "runtime/models/hf_config.h"

namespace piper {
namespace {

struct Flavor {
  const char* name;
  Qwen3Config config;
};

// The dense sizes of arXiv 2505.09388, as in the config.json that Qwen publishes with each.
constexpr std::int64_t kPublishedVocab = 151936;
const Flavor kFlavors[] = {
    {"debug",
     {.layers = 4,
      .dim = 128,
      .heads = 4,
      .kv_heads = 2,
      .head_dim = 32,
      .ffn = 352,
      .vocab = 257}},
    {"0.6b", {28, 1024, 16, 8, 128, 3072, kPublishedVocab, /*tied=*/true, /*rope_theta=*/1e6}},
    {"1.7b", {28, 2048, 16, 8, 128, 6144, kPublishedVocab, true, 1e6}},
    {"4b", {36, 2560, 32, 8, 128, 9728, kPublishedVocab, true, 1e6}},
    {"8b", {36, 4096, 32, 8, 128, 12288, kPublishedVocab, false, 1e6}},
};

Expected<Qwen3Config> find_flavor(const std::string& name, const Location& where) {
  const std::string known = known_spelling(name, qwen3_flavors());
  for (const Flavor& flavor : kFlavors) {
    if (flavor.name == known) {
      return flavor.config;
    }
  }
  return fail(error("model.flavor",
                    "unknown flavor '" + name + "'" + suggest(name, qwen3_flavors()), where));
}

// From `dim`, where neither flavor nor config.json is given.
Qwen3Config from_keys(const ModelConfig& keys) {
  Qwen3Config config;
  config.dim = keys.dim != 0 ? keys.dim : config.dim;
  config.heads = keys.heads != 0 ? keys.heads : std::max<std::int64_t>(1, config.dim / 64);
  config.kv_heads = config.heads;
  config.head_dim = config.heads > 0 ? config.dim / config.heads : 0;
  config.ffn = (config.dim * 8 / 3 + 15) / 16 * 16;
  return config;
}

void replace_by_keys(Qwen3Config& model, const ModelConfig& keys) {
  const auto replace = [](auto& value, const auto& key) { value = key != 0 ? key : value; };
  replace(model.layers, keys.layers);
  replace(model.dim, keys.dim);
  replace(model.heads, keys.heads);
  replace(model.kv_heads, keys.kv_heads);
  replace(model.head_dim, keys.head_dim);
  replace(model.ffn, keys.ffn);
  replace(model.vocab, keys.vocab);
  replace(model.rope_theta, keys.rope_theta);
  replace(model.norm_eps, keys.norm_eps);
  model.tied = keys.tied.value_or(model.tied);
  model.dropout = keys.dropout;
}

// A folder beside a flavor, which may hold nothing but a tokenizer, must not contradict it.
Expected<Qwen3Config> folder_or_flavor(const Config& config) {
  const ModelConfig& keys = config.model;
  const bool described = has_hf_config(keys.hf_assets_path);
  std::error_code failure;
  if (!described &&
      (keys.flavor.empty() || !std::filesystem::is_directory(keys.hf_assets_path, failure))) {
    return fail(missing_folder(keys.hf_assets_path,
                               keys.flavor.empty() ? "a folder with a config.json" : "a folder",
                               "model.hf_assets_path", config.where("model.hf_assets_path")));
  }
  if (!described) {
    return find_flavor(keys.flavor, config.where("model.flavor"));
  }
  PIPER_ASSIGN(const HfConfig folder, read_hf_config(keys.hf_assets_path));
  if (!keys.flavor.empty()) {
    PIPER_ASSIGN(Qwen3Config flavor, find_flavor(keys.flavor, config.where("model.flavor")));
    replace_by_keys(flavor, keys);
    PIPER_ASSIGN(const Diagnostics remarks,
                 compare_with_folder(config, flavor, folder, config.where("model.flavor")));
  }
  return folder.model;
}

Expected<Qwen3Config> base_config(const Config& config) {
  const ModelConfig& keys = config.model;
  if (!keys.hf_assets_path.empty()) {
    return folder_or_flavor(config);
  }
  return keys.flavor.empty() ? from_keys(keys)
                             : find_flavor(keys.flavor, config.where("model.flavor"));
}

Diagnostics broken_rules(const Qwen3Config& model, const Config& config) {
  Diagnostics mistakes;
  const auto rule = [&](bool holds, const char* key, const std::string& expected,
                        const auto& value) {
    if (!holds) {
      std::ostringstream text;
      text << key << ": expected " << expected << ", got " << value;
      mistakes.push_back(error(std::string("model.") + key, text.str(),
                               config.where(std::string("model.") + key)));
    }
  };
  const std::pair<const char*, std::int64_t> sizes[] = {
      {"layers", model.layers},     {"dim", model.dim},           {"heads", model.heads},
      {"kv_heads", model.kv_heads}, {"head_dim", model.head_dim}, {"ffn", model.ffn},
      {"vocab", model.vocab}};
  for (const auto& [key, size] : sizes) {
    rule(size > 0, key, "at least 1", size);
    rule(size <= (std::int64_t{1} << 31), key, "at most 2^31", size);
  }
  rule(model.kv_heads <= 0 || model.heads % model.kv_heads == 0, "heads",
       "a multiple of kv_heads = " + std::to_string(model.kv_heads), model.heads);
  rule(model.head_dim % 2 == 0, "head_dim", "an even number", model.head_dim);
  rule(std::isfinite(model.rope_theta) && model.rope_theta > 0, "rope_theta", "above 0",
       model.rope_theta);
  rule(std::isfinite(model.norm_eps) && model.norm_eps > 0, "norm_eps", "above 0", model.norm_eps);
  if (config.training.dataset == Dataset::text) {
    rule(model.vocab <= 0 || model.vocab >= 257, "vocab",
         "at least 257 for text (256 bytes and an end of document)", model.vocab);
  }
  return mistakes;
}

}  // namespace

std::int64_t Qwen3Config::parameters() const {
  const std::int64_t attention =
      dim * head_dim * (2 * heads + 2 * kv_heads) + 2 * head_dim;  // q, o; k, v; norms
  const std::int64_t layer = attention + 3 * dim * ffn + 2 * dim;
  return layers * layer + dim + vocab * dim * (tied ? 1 : 2);
}

std::vector<std::string> qwen3_flavors() {
  std::vector<std::string> names;
  for (const Flavor& flavor : kFlavors) {
    names.emplace_back(flavor.name);
  }
  return names;
}

Expected<Qwen3Config> resolve_qwen3(const Config& config) {
  PIPER_ASSIGN(Qwen3Config model, base_config(config));
  replace_by_keys(model, config.model);
  if (Diagnostics mistakes = broken_rules(model, config); !mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  return model;
}

}  // namespace piper

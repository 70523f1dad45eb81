#include "runtime/models/qwen3_config.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

namespace piper {
namespace {

using nlohmann::json;

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

Location location_in(const std::string& file, const std::string& text, std::size_t byte) {
  const std::string_view before = std::string_view(text).substr(0, byte);
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 = 0
  return {file, static_cast<std::uint32_t>(1 + std::count(before.begin(), before.end(), '\n')),
          static_cast<std::uint32_t>(before.size() - line_start + 1)};
}

// Reads config.json field by field and notes what is wrong.
class HuggingFaceReader {
 public:
  HuggingFaceReader(const json& fields, Location file) : fields_(fields), file_(std::move(file)) {}

  template <typename T>
  void read(const char* name, T& value) {
    const auto field = fields_.find(name);
    if (field == fields_.end() || field->is_null()) {
      return;
    }
    const bool fits = std::is_same_v<T, bool>           ? field->is_boolean()
                      : std::is_same_v<T, std::int64_t> ? field->is_number_integer()
                                                        : field->is_number();
    if (!fits) {
      mistake("'" + std::string(name) + "': expected " +
              (std::is_same_v<T, bool>           ? "true or false"
               : std::is_same_v<T, std::int64_t> ? "an integer"
                                                 : "a number") +
              ", got " + field->dump());
      return;
    }
    value = field->get<T>();
  }

  // What the model here does not do: any other value than `only` (or null) is refused.
  void expect(const char* name, const json& only) {
    const auto field = fields_.find(name);
    if (field != fields_.end() && !field->is_null() && *field != only) {
      mistake("'" + std::string(name) + "': expected " + only.dump() + ", got " + field->dump());
    }
  }

  void mistake(const std::string& message) {
    mistakes_.push_back(error("model.hf_config", message, file_));
  }
  const Diagnostics& mistakes() const { return mistakes_; }

 private:
  const json& fields_;
  Location file_;
  Diagnostics mistakes_;
};

Expected<Qwen3Config> read_config_json(const std::string& folder, const Location& where) {
  const std::string path = (std::filesystem::path(folder) / "config.json").string();
  std::ifstream stream(path, std::ios::binary);
  if (!stream) {
    return fail(error("model.hf_assets_path",
                      "expected a folder with a config.json, got '" + folder + "'", where));
  }
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  json fields;
  try {
    fields = json::parse(text);
  } catch (const json::parse_error& failure) {
    return fail(error("model.hf_config", "not JSON", location_in(path, text, failure.byte - 1)));
  }
  if (!fields.is_object()) {
    return fail(error("model.hf_config", "expected a JSON object", {path}));
  }

  Qwen3Config config;  // what a field is where config.json lacks it
  config.vocab = kPublishedVocab;
  config.hugging_face_float64 = true;
  HuggingFaceReader reader(fields, {path});
  reader.expect("model_type", "qwen3");
  reader.expect("hidden_act", "silu");
  reader.expect("attention_bias", false);
  reader.expect("attention_dropout", 0.0);
  reader.expect("use_sliding_window", false);
  reader.expect("rope_scaling", nullptr);
  for (const char* needed : {"hidden_size", "num_hidden_layers", "num_attention_heads",
                             "intermediate_size", "vocab_size"}) {
    if (!fields.contains(needed)) {
      reader.mistake("'" + std::string(needed) + "' is missing");
    }
  }
  reader.read("num_hidden_layers", config.layers);
  reader.read("hidden_size", config.dim);
  reader.read("num_attention_heads", config.heads);
  config.kv_heads = config.heads;
  reader.read("num_key_value_heads", config.kv_heads);
  config.head_dim = 128;
  reader.read("head_dim", config.head_dim);
  reader.read("intermediate_size", config.ffn);
  reader.read("vocab_size", config.vocab);
  reader.read("tie_word_embeddings", config.tied);
  reader.read("rope_theta", config.rope_theta);
  reader.read("rms_norm_eps", config.norm_eps);
  reader.read("initializer_range", config.init_deviation);
  if (const auto rope = fields.find("rope_parameters"); rope != fields.end() && rope->is_object()) {
    HuggingFaceReader nested(*rope, {path});
    nested.expect("rope_type", "default");
    nested.read("rope_theta", config.rope_theta);
    for (const Diagnostic& mistake : nested.mistakes()) {
      reader.mistake("rope_parameters: " + mistake.message);
    }
  }
  if (!reader.mistakes().empty()) {
    return fail(reader.mistakes());
  }
  return config;
}

Expected<Qwen3Config> find_flavor(const std::string& name, const Location& where) {
  for (const Flavor& flavor : kFlavors) {
    if (flavor.name == name) {
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

Expected<Qwen3Config> base_config(const Config& config) {
  const ModelConfig& keys = config.model;
  if (keys.flavor.empty() && keys.hf_assets_path.empty()) {
    return from_keys(keys);
  }
  return keys.flavor.empty()
             ? read_config_json(keys.hf_assets_path, config.where("model.hf_assets_path"))
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
  const ModelConfig& keys = config.model;
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
  if (Diagnostics mistakes = broken_rules(model, config); !mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  return model;
}

std::string qwen3_config_json(const Qwen3Config& config, DType dtype, const std::string& source) {
  using nlohmann::ordered_json;
  ordered_json fields = source.empty() ? ordered_json::object() : ordered_json::parse(source);
  fields["architectures"] = {"Qwen3ForCausalLM"};
  fields["model_type"] = "qwen3";
  fields["hidden_act"] = "silu";
  fields["attention_bias"] = false;
  fields["num_hidden_layers"] = config.layers;
  fields["hidden_size"] = config.dim;
  fields["num_attention_heads"] = config.heads;
  fields["num_key_value_heads"] = config.kv_heads;
  fields["head_dim"] = config.head_dim;
  fields["intermediate_size"] = config.ffn;
  fields["vocab_size"] = config.vocab;
  fields["tie_word_embeddings"] = config.tied;
  fields["rope_theta"] = config.rope_theta;
  fields["rms_norm_eps"] = config.norm_eps;
  fields["initializer_range"] = config.init_deviation;
  fields["torch_dtype"] = std::string(to_string(dtype));
  return fields.dump(2) + "\n";
}

}  // namespace piper

#include "runtime/models/hf_config.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

#include "core/base/json_reason.h"
#include "runtime/models/hf_keys.h"

namespace piper {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kLongestShown = 80;   // characters of a value in a message
constexpr std::int64_t kPositions = 32768;  // max_position_embeddings where it is missing

Location location_in(const std::string& file, const std::string& text, std::size_t byte) {
  const std::string_view before = std::string_view(text).substr(0, byte);
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 = 0
  return {file, static_cast<std::uint32_t>(1 + std::count(before.begin(), before.end(), '\n')),
          static_cast<std::uint32_t>(before.size() - line_start + 1)};
}

// Where the keys of the outermost object of well-formed JSON are.
std::map<std::string, Location, std::less<>> places_of_keys(const std::string& file,
                                                            const std::string& text) {
  std::map<std::string, Location, std::less<>> places;
  int depth = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '{' || text[at] == '[') {
      ++depth;
    } else if (text[at] == '}' || text[at] == ']') {
      --depth;
    } else if (text[at] == '"') {
      const std::size_t start = at++;
      while (text[at] != '"') {
        at += text[at] == '\\' ? 2 : 1;
      }
      const std::size_t next = text.find_first_not_of(" \t\r\n", at + 1);
      if (depth == 1 && text[next] == ':') {
        places[ordered_json::parse(text.substr(start, at + 1 - start)).get<std::string>()] =
            location_in(file, text, start);
      }
    }
  }
  return places;
}

std::string shown(const ordered_json& value) {
  const std::string text = value.dump();
  return text.size() <= kLongestShown ? text : text.substr(0, kLongestShown) + "...";
}

// Notes what is wrong with an object's keys.
class Reader {
 public:
  Reader(const ordered_json& fields, const HfConfig& config) : fields_(fields), config_(config) {}

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
      mistake(name, std::string("expected ") +
                        (std::is_same_v<T, bool>           ? "true or false"
                         : std::is_same_v<T, std::int64_t> ? "an integer"
                                                           : "a number") +
                        ", got " + shown(*field));
      return;
    }
    value = field->get<T>();
  }

  // Every key against `table`. `unknown`: also those that it lacks.
  void check(std::span<const HfKey> table, bool unknown, const std::string& outer = "") {
    for (const auto& [name, value] : fields_.items()) {
      const HfKey* key = find_hf_key(table, name);
      const std::string& place = outer.empty() ? name : outer;
      const std::string named = outer.empty() ? "" : "'" + name + "': ";
      if (value.is_null() || (key == nullptr && !unknown)) {
        continue;
      }
      if (key == nullptr) {
        mistake(place, named + "expected none of that name, got " + shown(value) +
                           "; it may change what the model computes (take it out where it does "
                           "not)");
      } else if (key->use == HfUse::only && value != ordered_json::parse(key->only)) {
        mistake(place, named + "expected " + std::string(key->only) + ", got " + shown(value));
      }
    }
  }

  void mistake(const std::string& key, const std::string& message) {
    mistakes_.push_back(error("model.hf_config", "'" + key + "': " + message, config_.where(key)));
  }
  void missing(const std::string& key) {
    mistakes_.push_back(error("model.hf_config", "'" + key + "' is missing", config_.where(key)));
  }
  void add(const Diagnostics& more) { mistakes_.insert(mistakes_.end(), more.begin(), more.end()); }
  const Diagnostics& mistakes() const { return mistakes_; }

 private:
  const ordered_json& fields_;
  const HfConfig& config_;
  Diagnostics mistakes_;
};

// rope_theta has three places, which must agree.
void read_rope(const ordered_json& fields, HfConfig& config, Reader& reader) {
  reader.read("rope_theta", config.model.rope_theta);
  bool given = fields.contains("rope_theta") && fields["rope_theta"].is_number();
  for (const char* name : {"rope_scaling", "rope_parameters"}) {
    const auto rope = fields.find(name);
    if (rope == fields.end() || rope->is_null()) {
      continue;
    }
    if (!rope->is_object()) {
      reader.mistake(name, "expected an object, got " + shown(*rope));
      continue;
    }
    Reader nested(*rope, config);
    nested.check(hf_rope_keys(), /*unknown=*/true, name);
    double theta = config.model.rope_theta;
    nested.read("rope_theta", theta);
    reader.add(nested.mistakes());
    if (given && theta != config.model.rope_theta) {
      reader.mistake(name, "expected one rope_theta, got " + shown(theta) + " here and " +
                               shown(config.model.rope_theta) + " at its other place");
    }
    given = given || rope->contains("rope_theta");
    config.model.rope_theta = theta;
  }
}

void read_layer_types(const ordered_json& fields, HfConfig& config, Reader& reader) {
  const auto types = fields.find("layer_types");
  if (types == fields.end() || types->is_null()) {
    return;
  }
  const bool full = types->is_array() && std::all_of(types->begin(), types->end(), [](auto& type) {
                      return type == "full_attention";
                    });
  if (!full) {
    reader.mistake("layer_types",
                   "expected \"full_attention\" for every layer, got " + shown(*types));
  } else if (static_cast<std::int64_t>(types->size()) != config.model.layers) {
    config.remarks.push_back(warning("model.hf_config",
                                     "'layer_types' has " + std::to_string(types->size()) +
                                         " entries for " + std::to_string(config.model.layers) +
                                         " layers; transformers refuses that",
                                     config.where("layer_types")));
  }
}

void read_sizes(const ordered_json& fields, HfConfig& config, Reader& reader) {
  for (const char* needed : {"hidden_size", "num_hidden_layers", "num_attention_heads",
                             "intermediate_size", "vocab_size"}) {
    if (!fields.contains(needed) || fields[needed].is_null()) {
      reader.missing(needed);
    }
  }
  Qwen3Config& model = config.model;
  reader.read("num_hidden_layers", model.layers);
  reader.read("hidden_size", model.dim);
  reader.read("num_attention_heads", model.heads);
  model.kv_heads = model.heads;
  reader.read("num_key_value_heads", model.kv_heads);
  model.head_dim = 128;
  reader.read("head_dim", model.head_dim);
  reader.read("intermediate_size", model.ffn);
  reader.read("vocab_size", model.vocab);
  reader.read("tie_word_embeddings", model.tied);
  reader.read("rms_norm_eps", model.norm_eps);
  reader.read("initializer_range", model.init_deviation);
  std::int64_t positions = 0;
  reader.read("max_position_embeddings", positions);
  if (positions > 0) {
    config.positions = positions;
  }
}

void remark_what_may_surprise(const ordered_json& fields, HfConfig& config) {
  if (!fields.contains("num_key_value_heads") && config.model.heads != 32) {
    config.remarks.push_back(
        warning("model.hf_config",
                "'num_key_value_heads' is missing: taken as num_attention_heads = " +
                    std::to_string(config.model.heads) + ", where transformers takes 32",
                {config.file}));
  }
  if (const auto pad = fields.find("pad_token_id"); pad != fields.end() && pad->is_number()) {
    config.remarks.push_back(
        warning("model.hf_config",
                "'pad_token_id': transformers gives row " + shown(*pad) +
                    " of the embedding no gradient as an input; here it has one",
                config.where("pad_token_id")));
  }
}

}  // namespace

Location HfConfig::where(std::string_view key) const {
  const auto place = keys.find(key);
  return place == keys.end() ? Location{file} : place->second;
}

bool has_hf_config(const std::string& folder) {
  std::error_code failure;
  return std::filesystem::is_regular_file(std::filesystem::path(folder) / "config.json", failure);
}

Expected<HfConfig> read_hf_config(const std::string& folder) {
  HfConfig config;
  config.file = (std::filesystem::path(folder) / "config.json").string();
  std::ifstream stream(config.file, std::ios::binary);
  config.text.assign(std::istreambuf_iterator<char>(stream), {});
  if (!stream) {
    return fail(error("model.hf_config", "cannot read the file", {config.file}));
  }
  ordered_json fields;
  try {
    fields = ordered_json::parse(config.text);
  } catch (const ordered_json::parse_error& failure) {
    return fail(error("model.hf_config", "not JSON: " + json_reason(failure.what()),
                      location_in(config.file, config.text, failure.byte - 1)));
  }
  if (!fields.is_object()) {
    return fail(error("model.hf_config", "expected a JSON object", {config.file}));
  }
  config.keys = places_of_keys(config.file, config.text);
  config.model.hugging_face_float64 = true;
  config.model.rope_theta = 10000;

  Reader reader(fields, config);
  const bool qwen3 = !fields.contains("model_type") || fields["model_type"] == "qwen3";
  reader.check(hf_keys(), /*unknown=*/qwen3);
  read_sizes(fields, config, reader);
  read_rope(fields, config, reader);
  read_layer_types(fields, config, reader);
  if (!reader.mistakes().empty()) {
    return fail(reader.mistakes());
  }
  remark_what_may_surprise(fields, config);
  if (fields.contains("quantization_config") && !fields["quantization_config"].is_null()) {
    config.quantized = config.where("quantization_config");
  }
  return config;
}

std::string print_hf_config(const Qwen3Config& model, DType dtype, std::int64_t seq_len,
                            const std::string& text) {
  ordered_json fields = text.empty() ? ordered_json::object() : ordered_json::parse(text);
  fields["architectures"] = {"Qwen3ForCausalLM"};
  fields["model_type"] = "qwen3";
  fields["hidden_act"] = "silu";
  fields["attention_bias"] = false;
  fields["num_hidden_layers"] = model.layers;
  fields["hidden_size"] = model.dim;
  fields["num_attention_heads"] = model.heads;
  fields["num_key_value_heads"] = model.kv_heads;
  fields["head_dim"] = model.head_dim;
  fields["intermediate_size"] = model.ffn;
  fields["vocab_size"] = model.vocab;
  fields["tie_word_embeddings"] = model.tied;
  fields["rms_norm_eps"] = model.norm_eps;
  fields["initializer_range"] = model.init_deviation;
  // transformers 4 reads the first, transformers 5 the second.
  fields["rope_theta"] = model.rope_theta;
  fields["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", model.rope_theta}};
  if (fields.contains("rope_scaling")) {
    fields["rope_scaling"] = nullptr;
  }
  if (fields.contains("layer_types") && !fields["layer_types"].is_null()) {
    fields["layer_types"] =
        std::vector<std::string>(static_cast<std::size_t>(model.layers), "full_attention");
  }
  if (text.empty() || fields.value("max_position_embeddings", kPositions) < seq_len) {
    fields["max_position_embeddings"] = seq_len;
  }
  if (const auto pad = fields.find("pad_token_id");
      pad != fields.end() && pad->is_number() && *pad >= model.vocab) {
    *pad = nullptr;  // transformers refuses one outside of the embedding
  }
  fields.erase("quantization_config");
  // In the spelling of the folder; transformers takes the first since 4.56, and the second.
  const bool spelled = fields.contains("dtype") || fields.contains("torch_dtype");
  for (const char* name : {"dtype", "torch_dtype"}) {
    if (!spelled || fields.contains(name)) {
      fields[name] = std::string(to_string(dtype));
    }
  }
  return fields.dump(2) + "\n";
}

}  // namespace piper

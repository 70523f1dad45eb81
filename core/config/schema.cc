#include "core/config/schema.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "core/config/spelling.h"

namespace piper {
namespace {

constexpr Bounds at_least(double low) {
  return {.low = low};
}
constexpr Bounds above(double low) {
  return {.low = low, .low_open = true};
}
constexpr Bounds between(double low, double high) {
  return {.low = low, .high = high};
}
constexpr Bounds below_one() {
  return {.low = 0, .high = 1, .high_open = true};
}

// Of emulated computations: longer ones are slips, and cannot be interrupted.
constexpr Bounds kSleep = between(0, 10000);

// Larger sizes are slips, and products of them would overflow.
constexpr Bounds size_up_to(double high) {
  return between(1, high);
}

template <typename T>
struct Unwrap {
  using type = T;
  static constexpr bool optional = false;
};
template <typename T>
struct Unwrap<std::optional<T>> {
  using type = T;
  static constexpr bool optional = true;
};

template <typename T>
constexpr Key::Type type_of() {
  if constexpr (std::is_same_v<T, bool>) {
    return Key::Type::boolean;
  } else if constexpr (std::is_integral_v<T>) {
    return Key::Type::integer;
  } else if constexpr (std::is_floating_point_v<T>) {
    return Key::Type::number;
  } else if constexpr (std::is_same_v<T, std::string>) {
    return Key::Type::text;
  } else {
    static_assert(std::is_same_v<T, std::vector<std::string>>);
    return Key::Type::texts;
  }
}

template <typename T>
T from_raw(const RawValue& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value.boolean;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(value.integer);
  } else if constexpr (std::is_floating_point_v<T>) {
    return value.kind == RawValue::Kind::integer ? static_cast<T>(value.integer) : value.number;
  } else if constexpr (std::is_same_v<T, std::string>) {
    return value.text;
  } else {
    T texts;
    if (value.kind == RawValue::Kind::text) {
      texts.push_back(value.text);
    }
    for (const RawValue& item : value.items) {
      texts.push_back(item.text);
    }
    return texts;
  }
}

// "" where a value means "not given": an empty text or list, a number outside its own bounds.
template <typename T>
std::string to_toml(const T& value, const Bounds& bounds) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_integral_v<T>) {
    return bounds.holds(static_cast<double>(value)) ? std::to_string(value) : "";
  } else if constexpr (std::is_floating_point_v<T>) {
    return bounds.holds(value) ? toml_number(value) : "";
  } else if constexpr (std::is_same_v<T, std::string>) {
    return value.empty() ? "" : toml_text(value);
  } else {
    std::string list;
    for (const std::string& text : value) {
      list += (list.empty() ? "" : ", ") + toml_text(text);
    }
    return list.empty() ? "" : '[' + list + ']';
  }
}

Key named(std::string_view path, std::string_view help) {
  const std::size_t dot = path.find('.');
  Key key;
  key.section = path.substr(0, dot);
  key.name = path.substr(dot + 1);
  key.help = help;
  return key;
}

// `access` gives the member of a Config: its type is the key's.
template <typename Access>
Key key(std::string_view path, Access access, std::string_view help, Bounds bounds = {}) {
  using Member = std::remove_cvref_t<std::invoke_result_t<Access, Config&>>;
  using Value = typename Unwrap<Member>::type;
  Key made = named(path, help);
  made.type = type_of<Value>();
  made.bounds = bounds;
  made.store = [access](Config& config, const RawValue& value) {
    access(config) = from_raw<Value>(value);
  };
  made.text = [access, bounds](const Config& config) -> std::string {
    if constexpr (Unwrap<Member>::optional) {
      return access(config) ? to_toml(*access(config), bounds) : "";
    } else {
      return to_toml(access(config), bounds);
    }
  };
  return made;
}

// One of several names, each with the value that it stands for.
template <typename Access, typename Value>
Key choice(std::string_view path, Access access, std::vector<std::pair<std::string, Value>> values,
           std::string_view help, std::vector<std::string> later = {}) {
  Key made = named(path, help);
  made.type = Key::Type::choice;
  for (const auto& [name, value] : values) {
    made.choices.push_back(name);
  }
  made.later = std::move(later);
  made.store = [access, values, choices = made.choices](Config& config, const RawValue& raw) {
    const std::string meant = known_spelling(raw.text, choices);
    for (const auto& [name, value] : values) {
      if (name == meant) {
        access(config) = value;
      }
    }
  };
  made.text = [access, values](const Config& config) -> std::string {
    for (const auto& [name, value] : values) {
      if (access(config) == value) {
        return toml_text(name);
      }
    }
    return "";
  };
  return made;
}

// A table of conditions on tags; what they mean is checked where it is used.
template <typename Access>
Key filter(std::string_view path, Access access, std::string_view help) {
  Key made = named(path, help);
  made.type = Key::Type::filter;
  made.store = [access](Config& config, const RawValue& value) { access(config) = value; };
  made.text = [access](const Config& config) -> std::string {
    return access(config).entries.empty() ? "" : toml_value(access(config));
  };
  return made;
}

// Designed, and refused by this version.
Key later(std::string_view path, std::string_view help) {
  Key made = named(path, help);
  made.supported = false;
  return made;
}

#define PIPER_MEMBER(path)    \
  [](auto& config) -> auto& { \
    return config.path;       \
  }

std::vector<Key> make_schema() {
  using Texts = std::vector<std::pair<std::string, std::string>>;
  using Recomputed = ActivationCheckpointConfig::Mode;
  return {
      key("model.name", PIPER_MEMBER(model.name),
          "the model: `qwen3`, or one that `library` registers"),
      key("model.flavor", PIPER_MEMBER(model.flavor),
          "a published size of the model, for qwen3 `debug`, `0.6b`, `1.7b`, `4b` or `8b`; further "
          "keys override it"),
      key("model.hf_assets_path", PIPER_MEMBER(model.hf_assets_path),
          "a folder with Hugging Face's `config.json`; further keys override it"),
      key("model.library", PIPER_MEMBER(model.library),
          "a shared library that registers models; other keys of this section are then the model's "
          "own"),
      key("model.graph", PIPER_MEMBER(model.graph),
          "a graph written by `piper capture`, to plan from without LibTorch; such a job cannot "
          "train"),
      key("model.freeze", PIPER_MEMBER(model.freeze),
          "globs on parameter names: these get no gradient and never change"),
      key("model.layers", PIPER_MEMBER(model.layers), "number of layers", size_up_to(100'000)),
      key("model.dim", PIPER_MEMBER(model.dim), "width of the residual stream",
          size_up_to(1 << 20)),
      key("model.heads", PIPER_MEMBER(model.heads), "attention heads", size_up_to(1 << 16)),
      key("model.kv_heads", PIPER_MEMBER(model.kv_heads),
          "heads of keys and values; divides `heads`", size_up_to(1 << 16)),
      key("model.head_dim", PIPER_MEMBER(model.head_dim), "width of a head; even",
          size_up_to(1 << 16)),
      key("model.ffn", PIPER_MEMBER(model.ffn), "width of the feed-forward layers",
          size_up_to(1 << 22)),
      key("model.vocab", PIPER_MEMBER(model.vocab),
          "number of tokens; text data needs 257 (256 bytes and the end of a document)",
          size_up_to(1 << 24)),
      key("model.tied", PIPER_MEMBER(model.tied), "the output layer uses the embedding's weights"),
      key("model.rope_theta", PIPER_MEMBER(model.rope_theta), "base of the rotary embedding",
          above(0)),
      key("model.norm_eps", PIPER_MEMBER(model.norm_eps), "epsilon of RMSNorm", above(0)),
      later("model.experts", "experts a layer; 0 = a dense model"),
      later("model.experts_per_token", "experts that a token goes to"),
      later("model.expert_ffn", "width of an expert"),
      later("model.shared_expert_ffn", "width of the shared expert"),
      later("model.moe_layers", "which layers have experts"),
      later("model.capacity_factor", "largest number of tokens an expert takes"),
      later("model.balance", "how experts are balanced"),
      later("model.aux_loss_coefficient", "weight of the balancing loss"),
      key("model.dropout", PIPER_MEMBER(model.dropout),
          "share of elements that are cleared at the end of each attention and feed-forward "
          "layer, while training",
          below_one()),

      choice<>(
          "training.dataset", PIPER_MEMBER(training.dataset),
          std::vector<std::pair<std::string, Dataset>>{{"text", Dataset::text},
                                                       {"jsonl", Dataset::jsonl}},
          "`text`: files of bytes; `jsonl`: lines of `{\"tokens\": [...], \"labels\": [...]}`"),
      key("training.dataset_path", PIPER_MEMBER(training.dataset_path),
          "files, folders or globs (`**`: any depth), relative to the working directory"),
      key("training.seq_len", PIPER_MEMBER(training.seq_len), "tokens a row", size_up_to(1 << 24)),
      key("training.global_batch_size", PIPER_MEMBER(training.global_batch_size),
          "rows (sequences) a step, over all ranks", size_up_to(1 << 24)),
      key("training.microbatches", PIPER_MEMBER(training.microbatches),
          "parts into which each data-parallel rank's rows are cut", size_up_to(1 << 20)),
      key("training.steps", PIPER_MEMBER(training.steps), "steps to train", size_up_to(1e15)),
      choice<>("training.dtype", PIPER_MEMBER(training.dtype),
               std::vector<std::pair<std::string, DType>>{{"float32", DType::float32},
                                                          {"float64", DType::float64},
                                                          {"bfloat16", DType::bfloat16}},
               "type of parameters and activations; gradients are reduced in float32 or wider"),
      key("training.seed", PIPER_MEMBER(training.seed),
          "of initial weights and of the data's order", at_least(0)),
      key("training.max_norm", PIPER_MEMBER(training.max_norm),
          "largest norm of the gradient, over all parameters; 0 = no clipping", at_least(0)),
      choice<>("training.non_finite", PIPER_MEMBER(training.non_finite),
               std::vector<std::pair<std::string, NonFinite>>{{"stop", NonFinite::stop},
                                                              {"skip", NonFinite::skip}},
               "what a gradient that is not finite does: `stop` the job, or `skip` the update"),

      choice<>("optimizer.name", PIPER_MEMBER(optimizer.name),
               std::vector<std::pair<std::string, OptimizerName>>{{"sgd", OptimizerName::sgd},
                                                                  {"adamw", OptimizerName::adamw}},
               "the optimizer"),
      key("optimizer.lr", PIPER_MEMBER(optimizer.lr), "learning rate", at_least(0)),
      key("optimizer.beta1", PIPER_MEMBER(optimizer.beta1), "adamw: decay of the first moment",
          below_one()),
      key("optimizer.beta2", PIPER_MEMBER(optimizer.beta2), "adamw: decay of the second moment",
          below_one()),
      key("optimizer.eps", PIPER_MEMBER(optimizer.eps), "adamw: added to the denominator",
          above(0)),
      key("optimizer.weight_decay", PIPER_MEMBER(optimizer.weight_decay), "weight decay",
          at_least(0)),
      key("optimizer.momentum", PIPER_MEMBER(optimizer.momentum), "sgd: momentum", below_one()),

      key("lr_scheduler.warmup_steps", PIPER_MEMBER(lr_scheduler.warmup_steps),
          "steps over which the learning rate rises to `optimizer.lr`", at_least(0)),
      choice<>("lr_scheduler.decay_type", PIPER_MEMBER(lr_scheduler.decay_type),
               std::vector<std::pair<std::string, Decay>>{{"none", Decay::none},
                                                          {"linear", Decay::linear},
                                                          {"cosine", Decay::cosine},
                                                          {"sqrt", Decay::sqrt}},
               "how the learning rate falls at the end"),
      key("lr_scheduler.decay_ratio", PIPER_MEMBER(lr_scheduler.decay_ratio),
          "share of the steps over which it falls; not given: all after the warm-up",
          Bounds{.low = 0, .high = 1, .low_open = true}),
      key("lr_scheduler.min_lr_factor", PIPER_MEMBER(lr_scheduler.min_lr_factor),
          "share of `optimizer.lr` that is left at the end", between(0, 1)),

      key("validation.freq", PIPER_MEMBER(validation.freq),
          "steps between two held-out losses; 0 = only at the end", at_least(0)),
      key("validation.steps", PIPER_MEMBER(validation.steps),
          "global batches of one held-out loss; 0 = the whole held-out part", at_least(0)),
      key("validation.fraction", PIPER_MEMBER(validation.fraction),
          "share of the tokens that is held out", below_one()),

      key("checkpoint.initial_load_path", PIPER_MEMBER(checkpoint.initial_load_path),
          "a folder with weights to start from; not given: `model.hf_assets_path`"),
      key("checkpoint.initial_load_in_hf", PIPER_MEMBER(checkpoint.initial_load_in_hf),
          "start from Hugging Face safetensors; not given: where there is an `initial_load_path`"),
      key("checkpoint.last_save_path", PIPER_MEMBER(checkpoint.last_save_path),
          "a folder for the weights after the last step"),
      key("checkpoint.last_save_in_hf", PIPER_MEMBER(checkpoint.last_save_in_hf),
          "save them as Hugging Face `config.json` and safetensors; not given: true"),

      key("metrics.log_freq", PIPER_MEMBER(metrics.log_freq), "steps between two printed lines",
          at_least(1)),
      key("metrics.file", PIPER_MEMBER(metrics.file), "gets one JSON object a step"),

      choice<>("comm.backend", PIPER_MEMBER(comm.backend), Texts{{"local", "local"}},
               "`local`: ranks are threads of one process", {"gloo", "nccl"}),
      key("comm.init_timeout_seconds", PIPER_MEMBER(comm.init_timeout_seconds),
          "longest time until all ranks have met", above(0)),
      key("comm.train_timeout_seconds", PIPER_MEMBER(comm.train_timeout_seconds),
          "longest time that a rank waits for another", above(0)),

      key("comm.receive_distance", PIPER_MEMBER(comm.receive_distance),
          "computations before its first reader at which a receive is posted: more hides latency, "
          "fewer save memory",
          between(0, 1 << 20)),

      choice<>("cost.model", PIPER_MEMBER(cost.model),
               Texts{{"unit", "unit"}, {"analytical", "analytical"}, {"measured", "measured"}},
               "costs that order independent tasks: the same for all, from floating-point "
               "operations and bytes, or from a file"),
      key("cost.machine", PIPER_MEMBER(cost.machine),
          "a file that describes the machine; not given: a generic one"),
      key("cost.file", PIPER_MEMBER(cost.file),
          "a file of measured costs, for `model = \"measured\"`"),

      choice<>("device.type", PIPER_MEMBER(device), Texts{{"cpu", "cpu"}}, "where tensors live",
               {"cuda"}),

      key("memory.capacity", PIPER_MEMBER(memory.capacity),
          "what a rank may hold at most, as \"40GiB\"; a job that could need more is refused"),
      key("profiling.trace", PIPER_MEMBER(profiling.trace),
          "a file for a trace of the last step, as `piper simulate --trace` predicts it"),
      choice<>(
          "activation_checkpoint.mode", PIPER_MEMBER(activation_checkpoint.mode),
          std::vector<std::pair<std::string, Recomputed>>{{"none", Recomputed::none},
                                                          {"full", Recomputed::full},
                                                          {"selective", Recomputed::selective}},
          "what is computed again for its backward instead of being kept: nothing, every "
          "layer, or what `filter` selects"),
      filter("activation_checkpoint.filter", PIPER_MEMBER(activation_checkpoint.filter),
             "with `mode = \"selective\"`: the regions, as in a `[[directive]]`"),

      key("emulate.forward_ms", PIPER_MEMBER(emulate.forward_ms),
          "milliseconds that a rank's forward of a micro-batch sleeps instead of computing, shared "
          "by its stages; with any of these three no computation runs the model",
          kSleep),
      key("emulate.backward_input_ms", PIPER_MEMBER(emulate.backward_input_ms),
          "the same of a backward pass for inputs; a backward that is not split takes this and the "
          "next together",
          kSleep),
      key("emulate.backward_weight_ms", PIPER_MEMBER(emulate.backward_weight_ms),
          "the same of a backward pass for weights", kSleep),
      key("emulate.link_latency_us", PIPER_MEMBER(emulate.link_latency_us),
          "microseconds that a transfer takes beside its bytes", between(0, 1e6)),
      key("emulate.link_gbps", PIPER_MEMBER(emulate.link_gbps),
          "gigabits a second of a link; not given: no limit", above(0)),
  };
}

#undef PIPER_MEMBER

}  // namespace

bool Bounds::holds(double value) const {
  return (low_open ? value > low : value >= low) && (high_open ? value < high : value <= high);
}

std::span<const Key> schema() {
  static const std::vector<Key> keys = make_schema();
  return keys;
}

const Key* find_key(std::string_view section, std::string_view name) {
  for (const Key& key : schema()) {
    if (key.section == section && key.name == name) {
      return &key;
    }
  }
  return nullptr;
}

bool is_given(const Config& config, std::string_view path) {
  static const Config defaults;
  const std::size_t dot = path.find('.');
  const Key* key = find_key(path.substr(0, dot), path.substr(dot + 1));
  PIPER_CHECK(key != nullptr && key->supported, "no such key: " + std::string(path));
  return key->text(config) != key->text(defaults);
}

const std::vector<std::string>& section_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> made;
    for (const Key& key : schema()) {
      const bool seen = std::find(made.begin(), made.end(), key.section) != made.end();
      if (!seen) {
        made.push_back(key.section);
      }
    }
    made.insert(made.begin() + 1, "mesh");
    made.emplace_back("strategy");
    made.emplace_back("directive");
    return made;
  }();
  return names;
}

std::vector<std::string> key_names(std::string_view section) {
  std::vector<std::string> names;
  for (const Key& key : schema()) {
    if (key.section == section && key.supported) {
      names.push_back(key.name);
    }
  }
  if (section == "optimizer") {
    names.emplace_back("group");
  }
  return names;
}

}  // namespace piper

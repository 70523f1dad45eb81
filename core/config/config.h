// The job: what a TOML file says, checked and typed. Keys, ranges and help are in one place,
// schema.cc.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/base/dtype.h"
#include "core/config/raw.h"

namespace piper {

// A value as the TOML file has it; used for a strategy's options, which its manifest types.
struct OptionValue {
  std::variant<bool, std::int64_t, double, std::string, std::vector<OptionValue>> value;
  Location where;
};

struct ModelConfig {
  std::string name = "qwen3";
  std::string flavor;          // "debug", "0.6b", "1.7b", "4b", "8b"; "" = by keys
  std::string hf_assets_path;  // folder with config.json (and weights, if initial_load_in_hf)
  std::string library;         // a shared library that registers models
  std::string graph;           // a captured graph to plan from; such a job cannot train
  std::vector<std::string> freeze;
  std::map<std::string, OptionValue>
      keys;  // what a model declares further (a user's own); typed by the model
  // 0 / unset: from flavor or config.json, else the default of the model.
  std::int64_t layers = 0, dim = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0, vocab = 0;
  std::optional<bool> tied;
  double rope_theta = 0, norm_eps = 0;
  double dropout = 0;  // share of elements that are cleared while training
};

struct MeshConfig {
  std::vector<std::pair<std::string, std::uint32_t>>
      axes;  // outermost first after `order` is applied; always has pp and dp; `ep` may be one
  std::uint32_t size(std::string_view axis) const;  // 1 where the axis is not there
  std::uint32_t world() const;                      // `ep` divides dp, so it does not count
};

enum class Dataset : std::uint8_t { text, jsonl };
enum class NonFinite : std::uint8_t { stop, skip };

struct TrainingConfig {
  Dataset dataset = Dataset::text;
  std::vector<std::string> dataset_path;  // files, folders or globs
  std::int64_t seq_len = 128;
  std::int64_t global_batch_size = 16;  // rows a step, over all ranks
  std::int64_t microbatches = 1;        // of each data-parallel rank's rows
  std::int64_t steps = 100;
  DType dtype = DType::float32;  // of parameters and activations
  std::uint64_t seed = 0;
  double max_norm = 0;  // 0 = no clipping
  NonFinite non_finite = NonFinite::stop;
};

enum class OptimizerName : std::uint8_t { sgd, adamw };

struct OptimizerGroup {
  std::vector<std::string> parameters;  // globs on names; the first group that matches wins
  std::optional<double> lr, weight_decay;
  Location where;
};

struct OptimizerConfig {
  OptimizerName name = OptimizerName::adamw;
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weight_decay = 0, momentum = 0;
  std::vector<OptimizerGroup> groups;
};

enum class Decay : std::uint8_t { none, linear, cosine, sqrt };

// As TorchTitan's: linear warm-up, stable, decay over the last `decay_ratio` of the steps down to
// min_lr_factor.
struct LrSchedulerConfig {
  std::int64_t warmup_steps = 0;
  Decay decay_type = Decay::none;
  std::optional<double> decay_ratio;  // unset: decay starts right after the warm-up
  double min_lr_factor = 0;
};

struct ValidationConfig {
  std::int64_t freq = 0;   // steps between evaluations; 0 = only at the end
  std::int64_t steps = 0;  // global batches an evaluation; 0 = the whole held-out part
  double fraction = 0.1;   // of the tokens that are held out
};

// The formats, where they are not given: Hugging Face's, wherever there is something to load or
// save.
struct CheckpointConfig {
  std::string initial_load_path;
  std::optional<bool> initial_load_in_hf;
  std::string last_save_path;
  std::optional<bool> last_save_in_hf;

  bool loads_hf() const { return initial_load_in_hf.value_or(!initial_load_path.empty()); }
  bool saves_hf() const { return last_save_in_hf.value_or(!last_save_path.empty()); }
};

struct MetricsConfig {
  std::int64_t log_freq = 1;
  std::string file;
};

struct CommConfig {
  std::string backend = "local";
  double init_timeout_seconds = 60, train_timeout_seconds = 300;
  std::int64_t receive_distance = 2;  // computations before its reader at which a receive is posted
};

struct CostConfig {
  std::string model = "unit";  // "unit" | "analytical" | "measured"
  std::string machine;         // a file that describes the machine; "" = a generic one
  std::string file;            // measured costs
};

struct ProfilingConfig {
  std::string trace;  // a file for the trace of the last step; "" = none
};

// For measuring the system itself: what takes a set time instead of working.
struct EmulateConfig {
  // Of a rank's share of a micro-batch; any of them given: no computation runs the model. A
  // backward that is not split takes both.
  std::optional<double> forward_ms, backward_input_ms, backward_weight_ms;
  // What a transfer takes at least, beside the work that it is.
  double link_latency_us = 0;
  std::optional<double> link_gbps;  // unset: no limit

  bool computes() const { return forward_ms || backward_input_ms || backward_weight_ms; }
  bool delays() const { return link_latency_us > 0 || link_gbps; }
};

// What is computed again before its backward instead of being kept since its forward.
struct ActivationCheckpointConfig {
  // full: every layer (tag `layer`); selective: the regions that `filter` selects.
  enum class Mode : std::uint8_t { none, full, selective } mode = Mode::none;
  RawValue filter;  // without entries: not given; core/directives/recompute.h reads it
};

struct MemoryConfig {
  std::optional<std::string> capacity;  // as written, "40GiB"; unset: not limited
  std::int64_t capacity_bytes = 0;      // the same as a number
};

struct StrategyConfig {
  std::string name;    // key for overrides; the plugin's id where not given
  std::string plugin;  // id
  std::vector<std::pair<std::string, OptionValue>> options;
  Location where;  // of its [[strategy]]
};

struct Config {
  std::string file;
  ModelConfig model;
  MeshConfig mesh;
  TrainingConfig training;
  OptimizerConfig optimizer;
  LrSchedulerConfig lr_scheduler;
  ValidationConfig validation;
  CheckpointConfig checkpoint;
  MetricsConfig metrics;
  CommConfig comm;
  CostConfig cost;
  MemoryConfig memory;
  ProfilingConfig profiling;
  ActivationCheckpointConfig activation_checkpoint;
  EmulateConfig emulate;
  std::string device = "cpu";
  std::vector<StrategyConfig> strategies;
  std::vector<RawValue> directives;  // [[directive]] tables; core/directives/toml reads them

  // Warnings: settings that have less effect than they say. Whoever loads a job reports them.
  Diagnostics remarks;

  // Where `section.key` was written: the file, or `--section.key=value` for an override. Falls back
  // to the section, then the file, so a rule about a default still points somewhere.
  Location where(std::string_view dotted_key) const;
  std::map<std::string, Location, std::less<>> locations;
};

// `overrides` are the texts after the two dashes: "training.steps=3". Relative paths in the file
// are relative to the working directory. Reports every mistake it can find, not the first alone.
Expected<Config> load_config(const std::string& file, const std::vector<std::string>& overrides);

// Index into optimizer.groups of the first group with a matching glob, or groups.size() for the
// default group.
std::uint32_t optimizer_group(const Config& config, std::string_view parameter);

// `*` matches any text, `?` one character; everything else itself.
bool glob_matches(std::string_view pattern, std::string_view text);

// The whole configuration as TOML with every default filled in.
std::string print(const Config& config);

// The text that identifies the model alone ([model], training.dtype, training.seq_len): the key of
// the graph cache.
std::string model_key(const Config& config);

}  // namespace piper

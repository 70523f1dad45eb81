#include <charconv>
#include <cstdlib>
#include <string>

#include "core/base/bytes.h"
#include "core/config/load.h"
#include "core/config/schema.h"

namespace piper {
namespace {

// "pp 2 x dp 4"
std::string axes_text(const MeshConfig& mesh) {
  std::string text;
  for (const auto& [name, size] : mesh.axes) {
    if (name != "ep") {  // takes no ranks of its own
      text += (text.empty() ? "" : " x ") + name + ' ' + std::to_string(size);
    }
  }
  return text;
}

void add_note(Diagnostic& diagnostic, const Config& config, std::string_view key) {
  if (const auto found = config.locations.find(key); found != config.locations.end()) {
    diagnostic.note(std::string(key) + " is given here", found->second);
  }
}

void check_rows(Loading& loading) {
  const Config& config = loading.config;
  if (!loading.good({"training.global_batch_size", "training.microbatches", "mesh.dp"})) {
    return;
  }
  const std::int64_t least = config.mesh.size("dp") * config.training.microbatches;
  if (config.training.global_batch_size >= least) {
    return;
  }
  Diagnostic wrong =
      error("config.rows",
            "training.global_batch_size: expected at least " + std::to_string(least) +
                " rows (dp " + std::to_string(config.mesh.size("dp")) + " x microbatches " +
                std::to_string(config.training.microbatches) + "), got " +
                std::to_string(config.training.global_batch_size),
            config.where("training.global_batch_size"));
  add_note(wrong, config, "mesh.dp");
  add_note(wrong, config, "training.microbatches");
  loading.refuse("training.global_batch_size", std::move(wrong));
}

void check_world(Loading& loading) {
  const char* variable = std::getenv("WORLD_SIZE");
  if (variable == nullptr || !loading.good({"mesh"})) {
    return;
  }
  const std::string text = variable;
  std::uint32_t size = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), size);
  const MeshConfig& mesh = loading.config.mesh;
  if (problem != std::errc() || end != text.data() + text.size()) {
    loading.refuse("mesh",
                   error("config.world_size", "WORLD_SIZE: expected an integer, got '" + text + "'",
                         loading.config.where("mesh")));
  } else if (size != mesh.world()) {
    loading.refuse("mesh", error("config.world_size",
                                 "mesh: expected " + text + " ranks (WORLD_SIZE), got " +
                                     std::to_string(mesh.world()) + " (" + axes_text(mesh) + ")",
                                 loading.config.where("mesh")));
  }
}

void check_checkpoint(Loading& loading) {
  const Config& config = loading.config;
  const CheckpointConfig& checkpoint = config.checkpoint;
  if (!loading.good({"checkpoint"})) {
    return;
  }
  if (checkpoint.loads_hf() && checkpoint.initial_load_path.empty() &&
      config.model.hf_assets_path.empty()) {
    loading.refuse("checkpoint",
                   error("config.missing_key",
                         "checkpoint.initial_load_in_hf: expected "
                         "checkpoint.initial_load_path or model.hf_assets_path, got neither",
                         config.where("checkpoint.initial_load_in_hf")));
  }
  if (!checkpoint.initial_load_path.empty() && !checkpoint.loads_hf()) {
    loading.refuse("checkpoint",
                   error("config.unsupported",
                         "checkpoint.initial_load_path without initial_load_in_hf = true "
                         "is not supported by this version",
                         config.where("checkpoint.initial_load_path")));
  }
  if (checkpoint.saves_hf() && checkpoint.last_save_path.empty()) {
    loading.refuse("checkpoint",
                   error("config.missing_key",
                         "checkpoint.last_save_in_hf: expected checkpoint.last_save_path, got none",
                         config.where("checkpoint.last_save_in_hf")));
  }
  if (!checkpoint.last_save_path.empty() && !checkpoint.saves_hf()) {
    loading.refuse("checkpoint", error("config.unsupported",
                                       "checkpoint.last_save_path without last_save_in_hf = true "
                                       "is not supported by this version",
                                       config.where("checkpoint.last_save_path")));
  }
}

void check_cost(Loading& loading) {
  const Config& config = loading.config;
  if (!loading.good({"cost"})) {
    return;
  }
  if (config.cost.model == "measured" && config.cost.file.empty()) {
    loading.refuse("cost", error("config.missing_key",
                                 "cost.model = \"measured\": expected cost.file, got none",
                                 config.where("cost.model")));
  }
}

void check_recomputation(Loading& loading) {
  const Config& config = loading.config;
  const ActivationCheckpointConfig& what = config.activation_checkpoint;
  if (!loading.good({"activation_checkpoint"})) {
    return;
  }
  const bool filtered = !what.filter.entries.empty();
  if (what.mode == ActivationCheckpointConfig::Mode::selective && !filtered) {
    loading.refuse(
        "activation_checkpoint",
        error("config.missing_key",
              "activation_checkpoint.mode = \"selective\": expected activation_checkpoint.filter, "
              "got none",
              config.where("activation_checkpoint.mode")));
  } else if (what.mode == ActivationCheckpointConfig::Mode::full && filtered) {
    loading.refuse("activation_checkpoint",
                   error("config.conflict",
                         "activation_checkpoint.filter: expected activation_checkpoint.mode = "
                         "\"selective\", got \"full\"",
                         config.where("activation_checkpoint.filter")));
  }
}

void check_memory(Loading& loading) {
  MemoryConfig& memory = loading.config.memory;
  if (!memory.capacity || !loading.good({"memory"})) {
    return;
  }
  if (const auto bytes = parse_bytes(*memory.capacity)) {
    memory.capacity_bytes = *bytes;
    return;
  }
  loading.refuse("memory.capacity",
                 error("config.range",
                       "memory.capacity: expected an amount as \"40GiB\" or \"512 MB\", got " +
                           toml_text(*memory.capacity),
                       loading.config.where("memory.capacity")));
}

}  // namespace

void check_rules(Loading& loading) {
  check_rows(loading);
  check_world(loading);
  check_checkpoint(loading);
  check_cost(loading);
  check_recomputation(loading);
  check_memory(loading);
}

}  // namespace piper

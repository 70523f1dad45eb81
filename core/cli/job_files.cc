#include "core/cli/job_files.h"

#include <glob.h>

#include <filesystem>
#include <string>
#include <variant>

namespace piper {
namespace {

// What [training] dataset_path says, without looking into the files.
void add_data(const Config& config, std::vector<Input>& inputs) {
  for (const std::string& entry : config.training.dataset_path) {
    inputs.push_back({"training.dataset_path", entry});
    glob_t matches{};
    if (glob(entry.c_str(), GLOB_NOSORT, nullptr, &matches) == 0) {
      for (std::size_t i = 0; i < matches.gl_pathc; ++i) {
        inputs.push_back({"training.dataset_path", matches.gl_pathv[i]});
      }
    }
    globfree(&matches);
  }
}

void add_option(const std::string& name, const OptionValue& option, std::vector<Input>& inputs) {
  std::error_code ignored;
  if (const auto* const text = std::get_if<std::string>(&option.value);
      text != nullptr && std::filesystem::is_regular_file(*text, ignored)) {
    inputs.push_back({name, *text});
  }
}

std::int64_t bytes_of(const ModelGraph& model) {
  std::int64_t bytes = 0;
  for (const Parameter& parameter : model.parameters) {
    bytes += parameter.elements() * static_cast<std::int64_t>(size_of(parameter.dtype));
  }
  return bytes;
}

}  // namespace

std::vector<Output> outputs_of(const Job& job, const TrainOptions& options) {
  const Config& config = job.config;
  std::vector<Output> outputs;
  const auto add = [&](const std::string& what, const std::string& path, Location where,
                       std::vector<std::string> files = {}, std::int64_t bytes = 1) {
    if (!path.empty()) {
      outputs.push_back({what, path, std::move(where), std::move(files), bytes});
    }
  };
  add("checkpoint.last_save_path", config.checkpoint.last_save_path,
      config.where("checkpoint.last_save_path"), {"model.safetensors", "config.json"},
      bytes_of(job.model));
  add("metrics.file", config.metrics.file, config.where("metrics.file"));
  add("profiling.trace", config.profiling.trace, config.where("profiling.trace"));
  add("--costs", options.save_costs, {});
  add("--save-gradients", options.save_gradients, {}, {}, bytes_of(job.model));
  return outputs;
}

std::vector<Input> inputs_of(const Config& config, const SearchPath& plugins) {
  std::vector<Input> inputs;
  const auto add = [&](const std::string& what, const std::string& path, bool replaceable = false) {
    if (!path.empty()) {
      inputs.push_back({what, path, replaceable});
    }
  };
  add("the job", config.file);
  add_data(config, inputs);
  add("model.library", config.model.library);
  add("model.graph", config.model.graph);
  add("cost.machine", config.cost.machine);
  add("cost.file", config.cost.file);
  for (const auto& [name, option] : config.model.keys) {
    add_option("model." + name, option, inputs);
  }
  const auto found = find_plugins(plugins);
  for (const StrategyConfig& strategy : config.strategies) {
    for (const auto& [name, option] : strategy.options) {
      add_option("strategy." + strategy.name + '.' + name, option, inputs);
    }
    for (const PluginInfo& plugin : found ? *found : std::vector<PluginInfo>()) {
      if (plugin.manifest.id == strategy.plugin) {
        add("plugin " + strategy.plugin, plugin.file);
      }
    }
  }
  add("model.hf_assets_path", config.model.hf_assets_path, true);
  add("checkpoint.initial_load_path", config.checkpoint.initial_load_path, true);
  return inputs;
}

Status check_outputs_of(const CommandLine& line, const Config& config,
                        std::vector<Output> outputs) {
  std::erase_if(outputs, [](const Output& output) { return output.path.empty(); });
  if (outputs.empty()) {
    return {};
  }
  PIPER_ASSIGN(const SearchPath plugins,
               plugin_search_path(line.plugin_directories, line.allow_unsafe_plugins));
  return check_outputs(outputs, inputs_of(config, plugins));
}

}  // namespace piper

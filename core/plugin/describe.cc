// What `piper plugins` prints.
#include <nlohmann/json.hpp>

#include "core/plugin/host.h"
#include "core/plugin/options.h"

namespace piper {
namespace {

using Json = nlohmann::ordered_json;

std::string type_name(const OptionSpec& spec) {
  return (spec.list ? "list of " : "") + std::string(to_string(spec.type));
}

std::string describe(const OptionSpec& option) {
  std::string text = "    " + option.name + ": " + expectation(option);
  text += option.unit.empty() ? "" : " (" + option.unit + ")";
  if (option.fallback) {
    text += ", default " + to_text(*option.fallback);
  }
  text += option.required ? ", required" : "";
  return text + "\n      " + option.help + "\n";
}

std::string list(const char* title, const std::vector<Capability>& capabilities) {
  std::string text;
  for (const Capability& capability : capabilities) {
    text += (text.empty() ? std::string("  ") + title + " " : ", ") + to_string(capability);
  }
  return text.empty() ? "" : text + "\n";
}

std::string describe(const PluginInfo& plugin) {
  const Manifest& manifest = plugin.manifest;
  std::string text = manifest.id + (manifest.version.empty() ? "" : " " + manifest.version);
  text += manifest.summary.empty() ? "\n" : ": " + manifest.summary + "\n";
  text += "  " + plugin.file + "\n";
  if (!plugin.shadowed_by.empty()) {
    return text + "  not used: " + plugin.shadowed_by + " comes first\n";
  }
  for (const Diagnostics* diagnostics : {&plugin.problems, &plugin.warnings}) {
    for (const Diagnostic& diagnostic : *diagnostics) {
      text += (diagnostics == &plugin.problems ? "  refused: " : "  warning: ") +
              diagnostic.message + " [" + diagnostic.code + "]\n";
    }
  }
  text += list("provides", manifest.provides) + list("requires", manifest.requirements) +
          list("conflicts with", manifest.conflicts);
  for (const OptionSpec& option : manifest.options) {
    text += (&option == &manifest.options.front() ? "  options:\n" : "") + describe(option);
  }
  return text;
}

Json to_json(const OptionValue& value) {
  return std::visit(
      [](const auto& held) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::vector<OptionValue>>) {
          Json items = Json::array();
          for (const OptionValue& item : held) {
            items.push_back(to_json(item));
          }
          return items;
        } else {
          return held;
        }
      },
      value.value);
}

Json to_json(const OptionSpec& option) {
  Json json{{"name", option.name},
            {"type", type_name(option)},
            {"required", option.required},
            {"help", option.help}};
  const auto set = [&](const char* key, const std::optional<OptionValue>& value) {
    if (value) {
      json[key] = to_json(*value);
    }
  };
  set("default", option.fallback);
  set("min", option.min);
  set("max", option.max);
  if (!option.values.empty()) {
    json["values"] = option.values;
  }
  if (!option.unit.empty()) {
    json["unit"] = option.unit;
  }
  return json;
}

Json to_json(const std::vector<Capability>& capabilities) {
  Json json = Json::array();
  for (const Capability& capability : capabilities) {
    json.push_back(to_string(capability));
  }
  return json;
}

Json to_json(const Diagnostics& diagnostics) {
  Json json = Json::array();
  for (const Diagnostic& diagnostic : diagnostics) {
    json.push_back({{"code", diagnostic.code},
                    {"message", diagnostic.message},
                    {"where", to_string(diagnostic.where)}});
  }
  return json;
}

Json to_json(const PluginInfo& plugin) {
  const Manifest& manifest = plugin.manifest;
  Json json{{"id", manifest.id},
            {"file", plugin.file},
            {"usable", plugin.usable()},
            {"problems", to_json(plugin.problems)},
            {"warnings", to_json(plugin.warnings)}};
  if (!plugin.shadowed_by.empty()) {
    json["shadowed_by"] = plugin.shadowed_by;
  }
  if (manifest.version.empty()) {
    return json;  // no manifest could be read
  }
  json["version"] = manifest.version;
  json["abi"] = std::to_string(manifest.abi_major) + "." + std::to_string(manifest.abi_minor);
  json["summary"] = manifest.summary;
  json["axes"] = manifest.axes;
  json["provides"] = to_json(manifest.provides);
  json["requires"] = to_json(manifest.requirements);
  json["conflicts"] = to_json(manifest.conflicts);
  json["options"] = Json::array();
  for (const OptionSpec& option : manifest.options) {
    json["options"].push_back(to_json(option));
  }
  return json;
}

}  // namespace

std::string describe(const std::vector<PluginInfo>& plugins) {
  std::string text;
  for (const PluginInfo& plugin : plugins) {
    text += (text.empty() ? "" : "\n") + describe(plugin);
  }
  return text.empty() ? "no plugins found\n" : text;
}

std::string describe_json(const std::vector<PluginInfo>& plugins) {
  Json json = Json::array();
  for (const PluginInfo& plugin : plugins) {
    json.push_back(to_json(plugin));
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace piper

#include "core/plugin/resolve.h"

#include <algorithm>
#include <utility>

namespace piper {
namespace {

Diagnostic not_found(const StrategyConfig& strategy, const std::vector<PluginInfo>& plugins,
                     const SearchPath& path) {
  std::vector<std::string> known;
  for (const PluginInfo& plugin : plugins) {
    if (plugin.usable()) {
      known.push_back(plugin.manifest.id);
    }
  }
  Diagnostic missing = error(
      "plugin.not_found", "no plugin '" + strategy.plugin + "'" + suggest(strategy.plugin, known),
      strategy.where);
  for (const std::string& folder : path.directories) {
    missing.note("looked in " + folder);
  }
  if (path.directories.empty()) {
    missing.note("there is no plugin folder: give one with --plugin-dir");
  }
  return missing;
}

// The reasons for which the plugin's file is refused, told at the table that names it.
Diagnostics refused(const StrategyConfig& strategy, const PluginInfo& plugin) {
  Diagnostics diagnostics;
  for (const Diagnostic& problem : plugin.problems) {
    Diagnostic told =
        error(problem.code, "plugin '" + strategy.plugin + "' is refused: " + problem.message,
              strategy.where);
    told.note("the file", problem.where);
    told.notes.insert(told.notes.end(), problem.notes.begin(), problem.notes.end());
    diagnostics.push_back(std::move(told));
  }
  return diagnostics;
}

Expected<ResolvedStrategy> resolve(const StrategyConfig& strategy,
                                   const std::vector<PluginInfo>& plugins, const SearchPath& path,
                                   Diagnostics& warnings) {
  const auto found = std::find_if(plugins.begin(), plugins.end(), [&](const PluginInfo& plugin) {
    return plugin.shadowed_by.empty() && plugin.manifest.id == strategy.plugin;
  });
  if (found == plugins.end()) {
    return fail(not_found(strategy, plugins, path));
  }
  if (!found->problems.empty()) {
    return fail(refused(strategy, *found));
  }
  warnings.insert(warnings.end(), found->warnings.begin(), found->warnings.end());
  for (const PluginInfo& other : plugins) {
    if (other.shadowed_by == found->file) {
      warnings.push_back(warning("plugin.shadowed",
                                 "plugin '" + strategy.plugin + "' is taken from " + found->file +
                                     ", and " + other.file + " is not used",
                                 strategy.where));
    }
  }
  PIPER_ASSIGN(std::vector<Option> options, resolve_options(found->manifest, strategy));
  return ResolvedStrategy{&strategy, *found, std::move(options)};
}

std::vector<std::pair<std::string, std::string>> provided(const Manifest& manifest) {
  std::vector<std::pair<std::string, std::string>> capabilities{{manifest.id, manifest.version}};
  for (const Capability& capability : manifest.provides) {
    capabilities.emplace_back(capability.id,
                              capability.version.empty() ? manifest.version : capability.version);
  }
  return capabilities;
}

bool provides(const Manifest& manifest, const Capability& wanted) {
  const auto capabilities = provided(manifest);
  return std::any_of(capabilities.begin(), capabilities.end(), [&](const auto& capability) {
    return capability.first == wanted.id && accepts(wanted, capability.second);
  });
}

std::string because(const Capability& capability) {
  return capability.reason.empty() ? "" : ": " + capability.reason;
}

void check_capabilities(const std::vector<ResolvedStrategy>& strategies, Diagnostics& mistakes) {
  for (const ResolvedStrategy& one : strategies) {
    const auto others_provide = [&](const Capability& wanted) {
      return std::find_if(strategies.begin(), strategies.end(), [&](const ResolvedStrategy& other) {
        return &other != &one && provides(other.plugin.manifest, wanted);
      });
    };
    for (const Capability& wanted : one.plugin.manifest.requirements) {
      if (others_provide(wanted) == strategies.end()) {
        mistakes.push_back(
            error("plugin.requires",
                  "plugin '" + one.plugin.manifest.id + "' requires '" + to_string(wanted) +
                      "', which no other strategy of the job provides" + because(wanted),
                  one.config->where));
      }
    }
    for (const Capability& unwanted : one.plugin.manifest.conflicts) {
      if (const auto other = others_provide(unwanted); other != strategies.end()) {
        Diagnostic clash = error("plugin.conflict",
                                 "plugin '" + one.plugin.manifest.id + "' conflicts with '" +
                                     to_string(unwanted) + "'" + because(unwanted),
                                 one.config->where);
        clash.note("which '" + other->plugin.manifest.id + "' provides", other->config->where);
        mistakes.push_back(std::move(clash));
      }
    }
  }
}

}  // namespace

Expected<std::vector<ResolvedStrategy>> resolve_strategies(const Config& config,
                                                           const SearchPath& path,
                                                           Diagnostics* warnings) {
  std::vector<ResolvedStrategy> strategies;
  if (config.strategies.empty()) {
    return strategies;
  }
  PIPER_ASSIGN(const std::vector<PluginInfo> plugins, find_plugins(path));
  Diagnostics mistakes;
  Diagnostics noticed;
  for (const StrategyConfig& strategy : config.strategies) {
    auto resolved = resolve(strategy, plugins, path, noticed);
    if (resolved) {
      strategies.push_back(std::move(*resolved));
    } else {
      mistakes.insert(mistakes.end(), resolved.error().begin(), resolved.error().end());
    }
  }
  if (mistakes.empty()) {
    check_capabilities(strategies, mistakes);
  }
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  if (warnings != nullptr) {
    warnings->insert(warnings->end(), noticed.begin(), noticed.end());
  }
  return strategies;
}

}  // namespace piper

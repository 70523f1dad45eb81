// Which plugin each [[strategy]] table means, with its options: all that is known before a plugin
// runs.
#pragma once

#include <vector>

#include "core/plugin/host.h"
#include "core/plugin/options.h"

namespace piper {

struct ResolvedStrategy {
  const StrategyConfig* config = nullptr;  // of the job
  PluginInfo plugin;
  std::vector<Option> options;
};

// In the order of the tables. Codes: plugin.not_found, plugin.requires, plugin.conflict, the
// reasons for which a plugin is refused, option.*. Warnings: plugin.shadowed, and what
// `allow_unsafe` let pass.
Expected<std::vector<ResolvedStrategy>> resolve_strategies(const Config& config,
                                                           const SearchPath& path,
                                                           Diagnostics* warnings);

}  // namespace piper

// Loads plugins and calls them. A library is loaded once and stays: pointers into it live in the
// job.
#pragma once

#include "core/plugin/context.h"

namespace piper {

class LoadedPlugin;

// Loads the library (by absolute path, all symbols resolved, none made global) unless a file of
// that device and inode is loaded already, calls its entry, and checks what it returns against the
// manifest. Diagnostics have no place; the caller adds it. Codes: plugin.load_failed,
// plugin.no_entry, plugin.no_table, plugin.short_struct, plugin.mismatch, plugin.null_slot,
// plugin.abi_minor, plugin.exception, and what the plugin reports.
Expected<LoadedPlugin*> load_plugin(const PluginInfo& info);

// One call of its `plan`; `costs` are those of the regions. Codes: plugin.no_diagnostic,
// plugin.exception, plugin.wrong_state, and what is recorded.
Expected<Proposal> call_plan(LoadedPlugin& plugin, const ResolvedStrategy& strategy,
                             const Config& config, const ModelGraph& model,
                             const std::vector<std::int64_t>& costs, Diagnostics& warnings);

// Calls `shutdown` of those that are loaded, in reverse order of loading.
void shut_down_loaded();

}  // namespace piper

// The host side of the plugin ABI: finds strategies, checks a job against their manifests, runs
// them, and takes what they propose. `find_plugins` and `check_strategies` run no line of any
// plugin.
#pragma once

#include <string>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/config/config.h"
#include "core/directives/directive.h"
#include "core/ir/model_graph.h"
#include "core/plugin/manifest.h"

namespace piper {

// Where plugins are looked for. The first folder that has an id wins; later files with the same id
// are shadowed.
struct SearchPath {
  std::vector<std::string> directories;  // absolute, canonical
  // Accept files and folders that others could have written (with a warning each). For shared
  // clusters.
  bool allow_unsafe = false;
};

// lib/piper/plugins of the prefix whose bin/ holds the running program; then PIPER_PLUGIN_PATH
// (colons between), unless the program runs with raised privileges; then `given` (--plugin-dir).
// The first is left out where it does not exist. Codes: plugin.directory.
Expected<SearchPath> plugin_search_path(const std::vector<std::string>& given,
                                        bool allow_unsafe = false);

// A file found in the search path.
struct PluginInfo {
  Manifest manifest;  // of a refused file: as much as is known; `id` is then the file's name
                      // without ".so"
  std::string file;   // absolute
  Diagnostics
      problems;  // why it is refused; empty: usable, as far as can be known without running it
  Diagnostics warnings;     // unsafe but accepted
  std::string shadowed_by;  // the file that is used instead, "" = none

  bool usable() const { return problems.empty() && shadowed_by.empty(); }
};

// Every *.so of the search path, by id, then in search order. A bad file is not an error here: it
// is listed as refused, and a job that names it is refused with the same diagnostic.
Expected<std::vector<PluginInfo>> find_plugins(const SearchPath& path);

// For people, and for programs (`piper plugins --json`).
std::string describe(const std::vector<PluginInfo>& plugins);
std::string describe_json(const std::vector<PluginInfo>& plugins);

// All that can be said about the [[strategy]] tables without a model: each plugin is found, can be
// loaded by this host, its options are as its manifest says, and what it requires and conflicts
// with holds. Call it before capture. Codes: plugin.*, option.*.
Status check_strategies(const Config& config, const SearchPath& path,
                        Diagnostics* warnings = nullptr);

// Runs every strategy of the job on the captured model, in the order of the [[strategy]] tables:
// one Proposal each. Does what check_strategies does first; `warnings` gets what the plugins
// themselves warn of. No strategy sees what another proposed. Not thread-safe; plugins are loaded
// once and stay until the process ends.
Expected<std::vector<Proposal>> propose(const Config& config, const ModelGraph& model,
                                        const SearchPath& path, Diagnostics* warnings = nullptr);

// Tells the plugins that ran that no further call comes. Before main returns; a second call does
// nothing.
void shut_down_plugins();

}  // namespace piper

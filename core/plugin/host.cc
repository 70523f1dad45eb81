#include "core/plugin/host.h"

#include <utility>

#include "core/cost/costs.h"
#include "core/plugin/loader.h"

namespace piper {
namespace {

// A diagnostic of the loader gets the table that names the plugin.
Diagnostics placed(Diagnostics diagnostics, const ResolvedStrategy& strategy) {
  for (Diagnostic& diagnostic : diagnostics) {
    if (!diagnostic.where.known()) {
      diagnostic.where = strategy.config->where;
      diagnostic.note("the file", Location{strategy.plugin.file, 0, 0});
    }
  }
  return diagnostics;
}

}  // namespace

Status check_strategies(const Config& config, const SearchPath& path, Diagnostics* warnings) {
  PIPER_TRY(resolve_strategies(config, path, warnings));
  return {};
}

Expected<std::vector<Proposal>> propose(const Config& config, const ModelGraph& model,
                                        const SearchPath& path, Diagnostics* warnings) {
  PIPER_ASSIGN(const std::vector<ResolvedStrategy> strategies,
               resolve_strategies(config, path, nullptr));
  PIPER_ASSIGN(const CostModel cost_model, load_cost_model(config));
  PIPER_ASSIGN(const std::vector<std::int64_t> costs,
               region_costs(cost_model, model, largest_microbatch(config)));
  std::vector<Proposal> proposals;
  Diagnostics mistakes;
  Diagnostics noticed;
  for (const ResolvedStrategy& strategy : strategies) {
    auto proposal = load_plugin(strategy.plugin).and_then([&](LoadedPlugin* plugin) {
      return call_plan(*plugin, strategy, config, model, costs, noticed);
    });
    if (proposal) {
      proposals.push_back(std::move(*proposal));
    } else {
      const Diagnostics told = placed(std::move(proposal.error()), strategy);
      mistakes.insert(mistakes.end(), told.begin(), told.end());
    }
  }
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  if (warnings != nullptr) {
    warnings->insert(warnings->end(), noticed.begin(), noticed.end());
  }
  return proposals;
}

void shut_down_plugins() {
  shut_down_loaded();
}

}  // namespace piper

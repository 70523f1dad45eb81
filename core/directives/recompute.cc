#include "core/directives/recompute.h"

#include <optional>
#include <utility>

#include "core/directives/toml/values.h"

namespace piper {
namespace {

constexpr const char* kLayer = "layer";

Expected<Filter> selected(const Config& config) {
  if (config.activation_checkpoint.mode == ActivationCheckpointConfig::Mode::selective) {
    return read_filter(config.activation_checkpoint.filter, "activation_checkpoint.filter");
  }
  return Filter{{{kLayer, Condition::Kind::present, {}}}, {}, {}};
}

}  // namespace

Expected<Annotated> mark_recomputed(Annotated dag, const Config& config) {
  if (config.activation_checkpoint.mode == ActivationCheckpointConfig::Mode::none) {
    return dag;
  }
  const Provenance from{"job", config.where("activation_checkpoint.mode")};
  PIPER_ASSIGN(const Filter filter, selected(config));
  PIPER_ASSIGN(const std::vector<RegionId> regions,
               select_regions(dag, filter, from, "activation_checkpoint"));
  const std::optional<TagId> layer = dag.model.find_tag(kLayer);
  const auto layer_of = [&](RegionId region) {
    return layer ? dag.model.region(region).tag(*layer) : std::nullopt;
  };
  std::uint32_t units = 0;
  for (std::size_t i = 0; i < regions.size(); ++i) {
    const bool goes_on = i > 0 && index(regions[i]) == index(regions[i - 1]) + 1 &&
                         layer_of(regions[i]) == layer_of(regions[i - 1]);
    units += goes_on ? 0 : 1;
    dag.recompute[index(regions[i])] = units - 1;
  }
  return dag;
}

}  // namespace piper

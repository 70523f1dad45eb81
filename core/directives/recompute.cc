#include "core/directives/recompute.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "core/directives/annotated.h"
#include "core/directives/directive.h"
#include "core/directives/toml/table.h"

namespace piper {
namespace {

constexpr const char* kLayer = "layer";

// `says`: how messages call it.
Expected<Annotated> mark_units(Annotated dag, const Filter& filter, const Provenance& from,
                               std::uint32_t origin, std::string_view says) {
  PIPER_ASSIGN(const std::vector<RegionId> regions, select_regions(dag, filter, from, says));

  const std::optional<TagId> layer = dag.model.find_tag(kLayer);
  const auto layer_of = [&](RegionId region) {
    return layer ? dag.model.region(region).tag(*layer) : std::nullopt;
  };
  std::uint32_t units = 0;
  for (std::uint32_t r = 0; r < dag.model.regions.size(); ++r) {
    const std::uint32_t unit = dag.columns.of<Recomputed>(RegionId{r}).unit;
    units = unit == Recomputed::kNever ? units : std::max(units, unit + 1);
  }
  RegionId last = none<RegionId>();
  for (const RegionId region : regions) {
    if (dag.columns.of<Recomputed>(region).unit != Recomputed::kNever) {
      continue;
    }
    const bool goes_on =
        valid(last) && index(region) == index(last) + 1 && layer_of(region) == layer_of(last);
    units += goes_on ? 0 : 1;
    dag.columns.edit<Recomputed>(region) = {units - 1, origin};
    last = region;
  }
  return dag;
}

Expected<Annotated> apply(Annotated dag, const RecomputeDirective& recompute,
                          const Provenance& from, std::uint32_t origin) {
  return mark_units(std::move(dag), recompute.filter, from, origin, "recompute");
}

// The job's [activation_checkpoint].
Expected<Annotated> complete(Annotated dag, const Config& config) {
  using Mode = ActivationCheckpointConfig::Mode;
  const ActivationCheckpointConfig& asked = config.activation_checkpoint;
  if (asked.mode == Mode::none) {
    return dag;
  }
  Filter filter{{{kLayer, Condition::Kind::present, {}}}, {}, {}};
  if (asked.mode == Mode::selective) {
    PIPER_ASSIGN(filter, read_filter(asked.filter, "activation_checkpoint.filter"));
  }
  const Provenance from{"job", config.where("activation_checkpoint.mode")};
  return mark_units(std::move(dag), filter, from, 0, "activation_checkpoint");
}

void key(const Annotated& dag, RegionId region, std::vector<std::uint32_t>& key) {
  key.push_back(dag.columns.of<Recomputed>(region).unit);
}

std::string mark(const Annotated& dag, RegionId region) {
  const std::uint32_t unit = dag.columns.of<Recomputed>(region).unit;
  return unit == Recomputed::kNever ? "" : " recomputed " + std::to_string(unit);
}

std::string text(const RecomputeDirective& recompute) {
  return "recompute " + to_string(recompute.filter);
}

}  // namespace

template <>
const Descriptor<RecomputeDirective>& descriptor() {
  static const Descriptor<RecomputeDirective> recompute{
      .kind = {.op = "recompute",
               .phase = DirectivePhase::recompute,
               .keys = {filter_key("filter!")},
               .read = [](DirectiveTable& table,
                          Directive& into) { into.what = RecomputeDirective{table.filter()}; },
               .complete = complete,
               .distinguishes = Distinguishes::pieces,
               .key = key,
               .mark = mark},
      .text = text,
      .apply = apply};
  return recompute;
}

}  // namespace piper

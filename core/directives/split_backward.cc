#include "core/directives/split_backward.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "core/directives/annotated.h"
#include "core/directives/directive.h"
#include "core/directives/toml/table.h"

namespace piper {
namespace {

Expected<Annotated> apply(Annotated dag, const SplitBackwardDirective& split,
                          const Provenance& from, std::uint32_t origin) {
  std::vector<std::uint32_t> microbatches;
  PIPER_ASSIGN(const std::vector<RegionId> regions,
               select_regions(dag, split.filter, from, "split_backward", &microbatches));
  if (microbatches.empty()) {
    microbatches.resize(dag.microbatches);
    std::iota(microbatches.begin(), microbatches.end(), 0U);
  }
  for (const RegionId region : regions) {
    BackwardSplit& own = dag.columns.edit<BackwardSplit>(region);
    std::vector<std::uint32_t> both;
    std::set_union(own.microbatches.begin(), own.microbatches.end(), microbatches.begin(),
                   microbatches.end(), std::back_inserter(both));
    own.microbatches = std::move(both);
    own.origin = own.origin == 0 ? origin : own.origin;
  }
  return dag;
}

void key(const Annotated& dag, RegionId region, std::vector<std::uint32_t>& key) {
  const BackwardSplit& split = dag.columns.of<BackwardSplit>(region);
  key.insert(key.end(), split.microbatches.begin(), split.microbatches.end());
}

std::string mark(const Annotated& dag, RegionId region) {
  const BackwardSplit& split = dag.columns.of<BackwardSplit>(region);
  if (split.microbatches.empty()) {
    return "";
  }
  return split.microbatches.size() < dag.microbatches
             ? " split_backward MB " + packed_list(split.microbatches)
             : " split_backward";
}

std::string text(const SplitBackwardDirective& split) {
  return "split_backward " + to_string(split.filter);
}

}  // namespace

template <>
const Descriptor<SplitBackwardDirective>& descriptor() {
  static const Descriptor<SplitBackwardDirective> split_backward{
      .kind = {.op = "split_backward",
               .phase = DirectivePhase::split_backward,
               .keys = {filter_key("filter!")},
               .read = [](DirectiveTable& table,
                          Directive& into) { into.what = SplitBackwardDirective{table.filter()}; },
               .distinguishes = Distinguishes::regions,
               .key = key,
               .mark = mark},
      .text = text,
      .apply = apply};
  return split_backward;
}

}  // namespace piper

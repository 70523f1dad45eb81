#include "core/directives/split_backward.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

namespace piper {

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
    std::vector<std::uint32_t>& own = dag.split_backward[index(region)];
    std::vector<std::uint32_t> both;
    std::set_union(own.begin(), own.end(), microbatches.begin(), microbatches.end(),
                   std::back_inserter(both));
    own = std::move(both);
    std::uint32_t& by = dag.backward_split_origin[index(region)];
    by = by == 0 ? origin : by;
  }
  return dag;
}

}  // namespace piper

#include "core/directives/split_backward.h"

namespace piper {

Expected<Annotated> apply(Annotated dag, const SplitBackwardDirective& split,
                          const Provenance& from, std::uint32_t) {
  PIPER_ASSIGN(const std::vector<RegionId> regions,
               select_regions(dag, split.filter, from, "split_backward"));

  for (const RegionId region : regions) {
    dag.split_backward[index(region)] = true;
  }
  return dag;
}

}  // namespace piper

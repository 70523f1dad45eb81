#include "core/directives/split.h"

namespace piper {

Expected<Annotated> apply(Annotated dag, const SplitDirective& split, const Provenance& from,
                          std::uint32_t origin) {
  const auto refuse = [&](std::string code, const std::string& why) {
    return fail(error(std::move(code), from.plugin + ": split: " + why, from.where));
  };
  PIPER_ASSIGN(const std::vector<RegionId> regions,
               select_regions(dag, split.filter, from, "split"));
  if (split.dim != "MB") {
    return refuse("split.dim",
                  "expected dim 'MB' (the rows of the batch), got '" + split.dim + "'");
  }
  if (regions.size() != dag.model.regions.size()) {
    return refuse("split.part", "expected a filter that selects the whole model, got " +
                                    to_string(split.filter) + ", which selects " +
                                    std::to_string(regions.size()) + " of " +
                                    std::to_string(dag.model.regions.size()) + " regions");
  }
  if (split.n < 1) {
    return refuse("split.count", "expected n of at least 1, got 0");
  }
  if (dag.split_origin && dag.microbatches != split.n) {
    const Provenance& first = dag.origins[*dag.split_origin];
    Diagnostic twice =
        error("split.twice",
              from.plugin + ": split: expected the " + std::to_string(dag.microbatches) +
                  " micro-batches of " + first.plugin + ", got " + std::to_string(split.n),
              from.where);
    twice.note("first split by " + first.plugin, first.where);
    return fail(std::move(twice));
  }
  if (split.n > dag.global_rows) {
    return refuse("split.rows", "expected at most " + std::to_string(dag.global_rows) +
                                    " parts (the rows of a step), got " + std::to_string(split.n));
  }

  dag.split_origin = origin;
  dag.microbatches = split.n;
  return dag;
}

}  // namespace piper

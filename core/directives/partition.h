// How a model is cut into consecutive parts: by tables and by plugins, by one rule.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/ir/model_graph.h"

namespace piper {

// How regions are cut. What stays together, a unit, is a run of regions with one index of tag
// `over`; a region without the tag goes with the unit before it, or, before the first, with the
// first. Where none has the tag, or `over` is "", a unit is a region.
//     embed L0 L0 L1 L1 head -> {embed L0 L0} {L1 L1 head}
struct Partition {
  // cost: under the job's cost model, which plugins see; flops and bytes: of the model; count:
  // equally many units.
  enum class By : std::uint8_t { count, flops, bytes, boundaries, cost };
  By by = By::flops;
  std::string over = "layer";
  std::uint32_t parts = 1;
  std::vector<std::uint32_t> boundaries;  // the first unit of each part but the first, ascending
};

std::vector<RegionId> all_regions(const ModelGraph& model);

struct Unit {
  std::vector<RegionId> regions;
  std::uint32_t index = 0;  // of the tag, or the region's number
};
std::vector<Unit> units_of(const ModelGraph& model, const std::vector<RegionId>& regions,
                           const std::string& over);

struct ModelPart {
  std::vector<RegionId> regions;
  std::int64_t cost = 0;
};
// `cost` of a region; not asked for counts and boundaries. Errors, whose messages do not say who
// wants it: tag.parts, tag.boundaries.
Expected<std::vector<ModelPart>> cut_into_parts(const ModelGraph& model,
                                                const std::vector<RegionId>& regions,
                                                const Partition& how,
                                                const std::function<std::int64_t(RegionId)>& cost);

// What flops or bytes say of a region in a micro-batch of that many rows.
std::int64_t cost_of(const ModelGraph& model, RegionId region, Partition::By by, std::int64_t rows);

// The first unit of each of `parts` contiguous, non-empty parts (1 <= parts <= costs.size()). The
// costliest part is as cheap as it can be; among such cuts the sum of squares is smallest, and then
// earlier parts are the smaller ones, because in 1F1B they hold more activations.
//     5 5 5 5 5 5 5 + 3 in 3 parts -> {5 5} {5 5 5} {5 5 3}
std::vector<std::size_t> balanced_cut(const std::vector<std::int64_t>& costs, std::size_t parts);

}  // namespace piper

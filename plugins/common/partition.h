// Cutting a model into contiguous stages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace pipeline {

// What stays together: a layer, with the regions that go with it. `first` is the first of its
// regions; it ends where the next unit begins.
struct Unit {
  std::size_t first = 0;
  std::uint32_t layer =
      0;  // the layer's index, or the region's number where the model has no layers
  std::int64_t cost = 0;
};

// One unit a run of regions with one layer index; regions without a layer go with the layer before
// them, those before the first layer with the first. Without any layer, one unit a region.
//     embed L0 L0 L1 L1 head -> {embed L0 L0} {L1 L1 head}
std::vector<Unit> make_units(const std::vector<std::optional<std::uint32_t>>& layers,
                             const std::vector<std::int64_t>& costs);

// The first unit of each of `stages` contiguous, non-empty parts (1 <= stages <= costs.size()). The
// costliest part is as cheap as it can be; among such cuts the sum of squares is smallest, and then
// earlier parts are the smaller ones, because in 1F1B they hold more activations.
std::vector<std::size_t> balance(const std::vector<std::int64_t>& costs, std::size_t stages);

}  // namespace pipeline

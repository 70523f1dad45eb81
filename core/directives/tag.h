// Names a group of regions.
//     region 3 layer=1            ->   region 3 layer=1 PP=0
// Runs first: every later directive may select by the new tag. A region has a tag at most once;
// regions that differ in a tag that a directive gave are never fused into one chunk. Errors:
// tag.name, tag.conflict, tag.boundaries, tag.parts, and those of select_regions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/directives/descriptor.h"

namespace piper {

// How regions are cut into consecutive parts, which get the indices 0, 1, ... of a tag. The unit is
// an index of tag `over`, or, where it is "", a region; regions without it go with the unit before
// them, those before the first with the first.
struct Partition {
  enum class By : std::uint8_t { count, flops, bytes, boundaries };
  By by =
      By::flops;  // count: equally many units; flops, bytes: the largest part as small as can be
  std::string over = "layer";
  std::uint32_t parts = 1;
  std::vector<std::uint32_t> boundaries;  // the first unit of each part but the first, ascending
};

// Index `index` of tag `name` for every region that the filter selects; with a partition,
// consecutive parts of them.
struct TagDirective {
  Filter filter;
  std::string name;
  std::uint32_t index = 0;
  std::optional<Partition> partition = std::nullopt;
};
template <>
const Descriptor<TagDirective>& descriptor();

}  // namespace piper

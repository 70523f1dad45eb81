// Names a group of regions.
//     region 3 layer=1            ->   region 3 layer=1 PP=0
// Runs first: every later directive may select by the new tag. A region has a tag at most once;
// regions that differ in a tag that a directive gave are never fused into one chunk. Errors:
// tag.name, tag.conflict, tag.boundaries, tag.parts, and those of select_regions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/directives/descriptor.h"
#include "core/directives/partition.h"

namespace piper {

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

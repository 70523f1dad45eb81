// Strong index types: one enum a kind of thing, so that a region's number never lands in a stage's
// place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace piper {

#define PIPER_DEFINE_ID(Name) enum class Name : std::uint32_t {}

PIPER_DEFINE_ID(RegionId);     // ModelGraph::regions
PIPER_DEFINE_ID(ValueId);      // ModelGraph::values
PIPER_DEFINE_ID(ParameterId);  // ModelGraph::parameters
PIPER_DEFINE_ID(DimensionId);  // ModelGraph::dimensions
PIPER_DEFINE_ID(TagId);        // ModelGraph::tag_names and those that directives add
PIPER_DEFINE_ID(GroupId);      // Groups: an ordered list of ranks
PIPER_DEFINE_ID(ChunkId);      // Dag::chunks
PIPER_DEFINE_ID(BucketId);     // Dag::buckets
PIPER_DEFINE_ID(NodeId);       // Dag::nodes
PIPER_DEFINE_ID(BufferId);     // Program::buffers (of one program)
PIPER_DEFINE_ID(StreamId);     // Program::streams (of one program)
PIPER_DEFINE_ID(TaskId);       // Program::tasks (of one program)
PIPER_DEFINE_ID(CommId);       // Plan::communicators

#undef PIPER_DEFINE_ID

// The index as a number.
template <typename Id>
constexpr std::uint32_t index(Id id) {
  return static_cast<std::uint32_t>(id);
}

// "No such thing". The largest value, so that a forgotten check fails at the first access.
template <typename Id>
constexpr Id none() {
  return static_cast<Id>(std::numeric_limits<std::uint32_t>::max());
}

template <typename Id>
constexpr bool valid(Id id) {
  return id != none<Id>();
}

}  // namespace piper

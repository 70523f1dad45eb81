// The groups of a collective communicator: disjoint, and each on its own.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/plan.h"

namespace piper {

// In the order of Communicator::ranks; one, where it has no group size.
std::vector<std::vector<std::uint32_t>> groups_of(const Communicator& communicator);

// The group that `rank` is in, and its place there.
struct GroupSeat {
  std::uint32_t group = 0, place = 0;
};
GroupSeat group_seat(const Communicator& communicator, std::uint32_t rank);

}  // namespace piper

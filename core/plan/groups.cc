#include "core/plan/groups.h"

#include <algorithm>

namespace piper {
namespace {

std::size_t size_of_group(const Communicator& communicator) {
  return communicator.group_size == 0 ? communicator.ranks.size() : communicator.group_size;
}

}  // namespace

std::vector<std::vector<std::uint32_t>> groups_of(const Communicator& communicator) {
  const std::size_t size = size_of_group(communicator);
  std::vector<std::vector<std::uint32_t>> groups;
  for (std::size_t begin = 0; begin < communicator.ranks.size(); begin += size) {
    const auto first = communicator.ranks.begin() + static_cast<std::ptrdiff_t>(begin);
    groups.emplace_back(first, first + static_cast<std::ptrdiff_t>(size));
  }
  return groups;
}

GroupSeat group_seat(const Communicator& communicator, std::uint32_t rank) {
  const std::vector<std::uint32_t>& ranks = communicator.ranks;
  const auto found = std::find(ranks.begin(), ranks.end(), rank);
  PIPER_CHECK(found != ranks.end(),
              "rank " + std::to_string(rank) + " is no member of a communicator");
  const auto position = static_cast<std::size_t>(found - ranks.begin());
  const std::size_t size = size_of_group(communicator);
  return {static_cast<std::uint32_t>(position / size), static_cast<std::uint32_t>(position % size)};
}

}  // namespace piper

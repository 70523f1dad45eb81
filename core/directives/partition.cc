#include "core/directives/partition.h"

#include <algorithm>
#include <limits>

namespace piper {

std::vector<std::uint32_t> balanced_cut(const std::vector<std::uint64_t>& costs,
                                        std::uint32_t parts) {
  // The smallest limit under which a greedy cut needs no more than `parts` parts; searched by
  // bisection on the sums, which are integers.
  const auto items = static_cast<std::uint32_t>(costs.size());
  std::uint64_t low = 0, high = 0;
  for (const std::uint64_t cost : costs) {
    low = std::max(low, cost);
    high += cost;
  }
  const auto cut = [&](std::uint64_t limit) {
    std::vector<std::uint32_t> first{0};
    std::uint64_t sum = 0;
    for (std::uint32_t i = 0; i < items; ++i) {
      // Leave one item for each part that is still to come.
      const bool must = first.size() < parts && items - i <= parts - first.size();
      if (i > 0 && (sum + costs[i] > limit || must)) {
        first.push_back(i);
        sum = 0;
      }
      sum += costs[i];
    }
    return first;
  };
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (cut(middle).size() <= parts) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return cut(low);
}

}  // namespace piper

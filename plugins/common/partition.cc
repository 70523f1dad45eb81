#include "partition.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace pipeline {
namespace {

// Whether parts of at most `limit` cover everything in at most `stages` parts.
bool fits(const std::vector<std::int64_t>& costs, std::size_t stages, std::int64_t limit) {
  std::size_t parts = 1;
  std::int64_t part = 0;
  for (const std::int64_t cost : costs) {
    if (cost > limit) {
      return false;
    }
    if (part > limit - cost) {
      ++parts;
      part = 0;
    }
    part += cost;
  }
  return parts <= stages;
}

// Enough parts of at most the limit are no more than `stages`; a part of several units can be cut
// further, and each of them stays within it, so that exactly `stages` non-empty parts exist too.
std::int64_t smallest_limit(const std::vector<std::int64_t>& costs, std::size_t stages) {
  std::int64_t low = *std::max_element(costs.begin(), costs.end());
  std::int64_t high = std::accumulate(costs.begin(), costs.end(), std::int64_t{0});
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (fits(costs, stages, middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

}  // namespace

std::vector<Unit> make_units(const std::vector<std::optional<std::uint32_t>>& layers,
                             const std::vector<std::int64_t>& costs) {
  const bool has_layers = std::any_of(layers.begin(), layers.end(),
                                      [](const auto& layer) { return layer.has_value(); });
  std::vector<Unit> units;
  bool open = false;  // the first unit has no layer yet
  for (std::size_t r = 0; r < layers.size(); ++r) {
    const bool starts =
        !has_layers || units.empty() || (layers[r] && (!open && *layers[r] != units.back().layer));
    if (starts) {
      units.push_back({r, layers[r].value_or(static_cast<std::uint32_t>(r)), 0});
      open = has_layers && !layers[r];
    } else if (open && layers[r]) {
      units.back().layer = *layers[r];
      open = false;
    }
    units.back().cost += costs[r];
  }
  return units;
}

std::vector<std::size_t> balance(const std::vector<std::int64_t>& costs, std::size_t stages) {
  const std::size_t n = costs.size();
  std::vector<std::int64_t> weights = costs;
  for (std::int64_t& weight : weights) {
    weight = std::max<std::int64_t>(weight, 0) + 1;  // so that units without cost are spread too
  }
  const std::int64_t limit = smallest_limit(weights, stages);
  std::vector<std::int64_t> sums(n + 1, 0);
  std::partial_sum(weights.begin(), weights.end(), sums.begin() + 1);
  int shift = 0;  // squares of parts must add up in 64 bits
  while ((sums[n] >> shift) >= (std::int64_t{1} << 31)) {
    ++shift;
  }
  const auto square = [&](std::size_t from, std::size_t to) {
    const auto part = static_cast<std::uint64_t>((sums[to] - sums[from]) >> shift);
    return part * part;
  };
  // least[i]: the smallest sum of squares of the units before i in `stage` parts; cut[stage][i]:
  // where the last begins.
  constexpr std::uint64_t impossible = std::numeric_limits<std::uint64_t>::max();
  std::vector<std::uint64_t> least(n + 1, impossible);
  least[0] = 0;
  std::vector<std::vector<std::size_t>> cut(stages + 1, std::vector<std::size_t>(n + 1, 0));
  for (std::size_t stage = 1; stage <= stages; ++stage) {
    std::vector<std::uint64_t> next(n + 1, impossible);
    for (std::size_t i = stage; i <= n; ++i) {
      for (std::size_t j = i; j-- > 0 && sums[i] - sums[j] <= limit;) {
        if (least[j] != impossible &&
            least[j] + square(j, i) <= next[i]) {  // of equals, the largest last part
          next[i] = least[j] + square(j, i);
          cut[stage][i] = j;
        }
      }
    }
    least = std::move(next);
  }
  std::vector<std::size_t> firsts(stages);
  std::size_t end = n;
  for (std::size_t stage = stages; stage > 0; --stage) {
    end = cut[stage][end];
    firsts[stage - 1] = end;
  }
  return firsts;
}

}  // namespace pipeline

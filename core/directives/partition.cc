#include "core/directives/partition.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

namespace piper {
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

std::vector<RegionId> all_regions(const ModelGraph& model) {
  std::vector<RegionId> all;
  for (std::uint32_t r = 0; r < model.regions.size(); ++r) {
    all.push_back(RegionId{r});
  }
  return all;
}

std::vector<Unit> units_of(const ModelGraph& model, const std::vector<RegionId>& regions,
                           const std::string& over) {
  const std::optional<TagId> tag = model.find_tag(over);
  const auto index_of = [&](RegionId region) {
    return tag ? model.region(region).tag(*tag) : std::nullopt;
  };
  const bool has_tag = std::any_of(regions.begin(), regions.end(), index_of);
  std::vector<Unit> units;
  std::optional<std::uint32_t> last;  // of the open unit, once a region of it has the tag
  for (const RegionId region : regions) {
    const std::optional<std::uint32_t> own =
        has_tag ? index_of(region) : std::optional(index(region));
    if (units.empty() || (own && last && *own != *last)) {
      units.emplace_back();
    }
    last = own ? own : last;
    units.back().regions.push_back(region);
    units.back().index = last.value_or(0);
  }
  return units;
}

Expected<std::vector<ModelPart>> cut_into_parts(const ModelGraph& model,
                                                const std::vector<RegionId>& regions,
                                                const Partition& how,
                                                const std::function<std::int64_t(RegionId)>& cost) {
  const std::vector<Unit> units = units_of(model, regions, how.over);
  const std::string count = std::to_string(units.size());
  const bool counts = how.by == Partition::By::count || how.by == Partition::By::boundaries;
  std::vector<std::int64_t> costs;
  for (const Unit& unit : units) {
    costs.push_back(counts ? 1 : 0);
    for (const RegionId region : counts ? std::vector<RegionId>{} : unit.regions) {
      costs.back() += cost(region);
    }
  }
  std::vector<std::size_t> first{0};
  if (how.by == Partition::By::boundaries) {
    for (const std::uint32_t boundary : how.boundaries) {
      if (boundary <= first.back() || boundary >= units.size()) {
        return fail(error("tag.boundaries", "expected ascending boundaries from 1 to " +
                                                std::to_string(units.size() - 1) + ", got " +
                                                std::to_string(boundary)));
      }
      first.push_back(boundary);
    }
  } else if (how.parts < 1 || how.parts > units.size()) {
    return fail(error("tag.parts", "expected 1 to " + count + " parts (the model has " + count +
                                       " units), got " + std::to_string(how.parts)));
  } else {
    first = balanced_cut(costs, how.parts);
  }
  std::vector<ModelPart> parts;
  for (std::size_t u = 0; u < units.size(); ++u) {
    if (parts.size() < first.size() && first[parts.size()] == u) {
      parts.emplace_back();
    }
    ModelPart& part = parts.back();
    part.regions.insert(part.regions.end(), units[u].regions.begin(), units[u].regions.end());
    part.cost += costs[u];
  }
  return parts;
}

std::int64_t cost_of(const ModelGraph& model, RegionId id, Partition::By by, std::int64_t rows) {
  const Region& region = model.region(id);
  if (by == Partition::By::flops) {
    return std::max<std::int64_t>(0, region.flops.at(rows));
  }
  std::int64_t bytes = region.saved_bytes.at(rows);
  for (const ParameterId parameter : region.parameters) {
    bytes += model.parameter(parameter).bytes();
  }
  return std::max<std::int64_t>(0, bytes);
}

std::vector<std::size_t> balanced_cut(const std::vector<std::int64_t>& costs, std::size_t stages) {
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

}  // namespace piper

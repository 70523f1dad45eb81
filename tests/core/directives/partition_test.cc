// How a model is cut into parts: which regions stay together, and where the cuts are.
#include "core/directives/partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "tests/support/toy_model.h"

namespace piper {
namespace {

std::vector<std::pair<std::uint32_t, std::size_t>> index_and_size(const ModelGraph& model,
                                                                  const std::string& over) {
  std::vector<std::pair<std::uint32_t, std::size_t>> units;
  for (const Unit& unit : units_of(model, all_regions(model), over)) {
    units.emplace_back(unit.index, unit.regions.size());
  }
  return units;
}

using Units = std::vector<std::pair<std::uint32_t, std::size_t>>;

TEST(Partition, KeepsALayerTogetherWithWhatFollowsIt) {
  EXPECT_EQ(index_and_size(test::toy_model({.layers = 3}), "layer"),
            (Units{{0, 2}, {1, 1}, {2, 2}}));
}

TEST(Partition, TakesRegionsWhereNoneHasTheTag) {
  EXPECT_EQ(index_and_size(test::toy_model({.layers = 1}), ""), (Units{{0, 1}, {1, 1}, {2, 1}}));
  EXPECT_EQ(index_and_size(test::toy_model({.layers = 1}), "block"),
            (Units{{0, 1}, {1, 1}, {2, 1}}));
}

// A head that costs half a layer: the last of three stages takes two layers and it, the first two.
TEST(Partition, CutsSevenLayersAndAHeadOnThreeStages) {
  EXPECT_EQ(balanced_cut({40, 40, 40, 40, 40, 40, 61}, 3), (std::vector<std::size_t>{0, 2, 5}));
}

// Every cut of n units in k parts.
void each_cut(std::size_t n, std::size_t k, std::vector<std::size_t>& firsts,
              const std::function<void()>& visit) {
  if (firsts.size() == k) {
    visit();
    return;
  }
  for (std::size_t first = firsts.empty() ? 0 : firsts.back() + 1; first + (k - firsts.size()) <= n;
       ++first) {
    firsts.push_back(first);
    each_cut(n, k, firsts, visit);
    firsts.pop_back();
    if (firsts.empty()) {
      return;  // the first part begins at 0
    }
  }
}

std::pair<std::int64_t, std::int64_t> worst_and_squares(const std::vector<std::int64_t>& costs,
                                                        const std::vector<std::size_t>& firsts) {
  std::int64_t worst = 0;
  std::int64_t squares = 0;
  for (std::size_t part = 0; part < firsts.size(); ++part) {
    const std::size_t end = part + 1 < firsts.size() ? firsts[part + 1] : costs.size();
    std::int64_t sum = 0;
    for (std::size_t i = firsts[part]; i < end; ++i) {
      sum += costs[i] + 1;
    }
    worst = std::max(worst, sum);
    squares += sum * sum;
  }
  return {worst, squares};
}

TEST(Partition, IsAsGoodAsTheBestOfAllCuts) {
  std::uint32_t seed = 1;
  for (int round = 0; round < 200; ++round) {
    std::vector<std::int64_t> costs;
    const std::size_t n = 1 + static_cast<std::size_t>(round) % 9;
    for (std::size_t i = 0; i < n; ++i) {
      seed = seed * 1664525U + 1013904223U;
      costs.push_back(static_cast<std::int64_t>(seed >> 24U));
    }
    for (std::size_t k = 1; k <= n; ++k) {
      std::pair<std::int64_t, std::int64_t> best{std::numeric_limits<std::int64_t>::max(), 0};
      std::vector<std::size_t> firsts;
      each_cut(n, k, firsts, [&] { best = std::min(best, worst_and_squares(costs, firsts)); });

      const auto found = balanced_cut(costs, k);

      ASSERT_EQ(found.size(), k);
      EXPECT_EQ(worst_and_squares(costs, found), best) << round << " " << k;
    }
  }
}

TEST(Partition, KeepsEarlierStagesSmallAmongEquals) {
  EXPECT_EQ(balanced_cut(std::vector<std::int64_t>(9, 100), 4),
            (std::vector<std::size_t>{0, 2, 4, 6}));
  EXPECT_EQ(balanced_cut(std::vector<std::int64_t>(6, 0), 3), (std::vector<std::size_t>{0, 2, 4}));
}

TEST(Partition, IsQuickForManyUnits) {
  std::vector<std::int64_t> costs(4000, std::int64_t{1} << 50);

  const auto firsts = balanced_cut(costs, 64);

  EXPECT_EQ(firsts.size(), 64U);
}

}  // namespace
}  // namespace piper

#include "runtime/data/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace piper {
namespace {

TEST(Order, IsAPermutationOfAllRows) {
  std::vector<std::uint32_t> rows = permutation(1000, 3, 5);
  std::sort(rows.begin(), rows.end());

  std::vector<std::uint32_t> all(1000);
  std::iota(all.begin(), all.end(), 0u);
  EXPECT_EQ(rows, all);
}

TEST(Order, DependsOnTheSeedAndTheEpochAlone) {
  EXPECT_EQ(permutation(100, 3, 5), permutation(100, 3, 5));
  EXPECT_NE(permutation(100, 3, 5), permutation(100, 3, 6));
  EXPECT_NE(permutation(100, 3, 5), permutation(100, 4, 5));
}

// Guards against a change of the generator, which would change every run.
TEST(Order, IsTheSameOnEveryMachine) {
  EXPECT_EQ(permutation(8, 0, 0), (std::vector<std::uint32_t>{1, 0, 6, 4, 3, 5, 2, 7}));
}

TEST(Order, VisitsEveryRowOnceAnEpoch) {
  RowSequence sequence(7, 1);
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::vector<int> seen(7, 0);
    for (int i = 0; i < 7; ++i) {
      ++seen[sequence.at(epoch * 7 + i)];
    }
    EXPECT_EQ(seen, std::vector<int>(7, 1));
  }
}

TEST(Order, APositionCanBeReadAgain) {
  RowSequence sequence(5, 1);
  const std::uint32_t first = sequence.at(3);
  sequence.at(23);

  EXPECT_EQ(sequence.at(3), first);
}

}  // namespace
}  // namespace piper

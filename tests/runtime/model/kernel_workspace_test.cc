// What products of bfloat16 take, in bytes that LibTorch's allocator counted.
#include "runtime/model/kernel_workspace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace piper {
namespace {

std::int64_t bytes(std::int64_t m, std::int64_t k, std::int64_t n, bool transposed = false) {
  return repacked_bytes({{0, m}, {0, k}, {0, n}, transposed}, 1);
}

TEST(RepackedBytes, AreOfABlockOfTheSecondOperandAndSums) {
  EXPECT_EQ(bytes(32, 64, 32), 13'312);
  EXPECT_EQ(bytes(128, 32, 128), 37'888);
}

TEST(RepackedBytes, AreOfABlockOfTheFirstOperandTooWhereItLiesColumnByColumn) {
  EXPECT_EQ(bytes(32, 64, 32, true), 17'536);
  EXPECT_EQ(bytes(128, 128, 32, true), 66'688);
  EXPECT_EQ(bytes(256, 512, 512, true), 410'752);
}

TEST(RepackedBytes, HaveSumsOfSixteenBlocksWhereThoseWait) {
  EXPECT_EQ(bytes(2048, 1000, 512, true), 131'072 + 737'408 + 1024);
  EXPECT_EQ(bytes(2048, 2048, 3000, true), bytes(256, 513, 1024, true));
}

TEST(RepackedBytes, AreTheSameHoweverLargeTheMatricesAre) {
  EXPECT_EQ(bytes(2048, 2048, 512), 196'608 + 1024);
  EXPECT_EQ(bytes(1 << 20, 1 << 20, 1 << 20), bytes(2048, 2048, 512));
}

TEST(RepackedBytes, AreNoneOfSmallProducts) {
  EXPECT_EQ(bytes(16, 16, 16), 0);
  EXPECT_GT(bytes(16, 17, 16), 0);
}

TEST(KernelWorkspace, IsThatOfTheLargestProductForTheRows) {
  const std::vector<std::vector<RepackedProduct>> cases = {
      {},
      {{{0, 16}, {0, 16}, {0, 16}, false}},
      {{{32, 0}, {0, 64}, {0, 32}, false}, {{0, 32}, {1, 30}, {0, 32}, true}},
      {{{1, 0}, {0, 64}, {0, 32}, false}, {{0, 64}, {1, 0}, {0, 32}, true}},
      {{{3, 1}, {0, 1000}, {0, 700}, false}, {{0, 1000}, {3, 1}, {0, 700}, true}},
      {{{128, 0}, {0, 64}, {0, 192}, false}, {{0, 64}, {128, 0}, {0, 192}, true}},
  };
  for (const std::vector<RepackedProduct>& products : cases) {
    Region region;
    region.workspace = kernel_workspace(products);
    for (const std::int64_t rows : {1, 2, 3, 4, 5, 7, 8, 17, 33, 34, 100, 257, 600, 1024, 5000}) {
      std::int64_t most = 0;
      for (const RepackedProduct& product : products) {
        most = std::max(most, repacked_bytes(product, rows));
      }
      EXPECT_EQ(region.workspace_bytes(rows), most) << &products - cases.data() << ", " << rows;
    }
  }
}

TEST(KernelWorkspace, IsAFewSizesWhereARowIsASequence) {
  EXPECT_EQ(kernel_workspace({{{128, 0}, {0, 64}, {0, 32}, false}}),
            (std::vector<SizeFrom>{{1, {16'384, 9'216}}, {3, {0, 41'984}}}));
  EXPECT_TRUE(kernel_workspace({}).empty());
}

}  // namespace
}  // namespace piper

// What products of bfloat16 take, in bytes that LibTorch's allocator counted.
#include "core/plan/kernel_workspace.h"

#include <gtest/gtest.h>

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
  Region region;
  region.repacked = {{{32, 0}, {0, 64}, {0, 32}, false}, {{0, 32}, {1, 30}, {0, 32}, true}};

  EXPECT_EQ(kernel_workspace(region, 1), bytes(32, 64, 32));
  EXPECT_EQ(kernel_workspace(region, 34), bytes(256, 64, 32));
  region.repacked.erase(region.repacked.begin());
  EXPECT_EQ(kernel_workspace(region, 34), 17'536);
  EXPECT_EQ(kernel_workspace(Region{}, 1), 0);
}

}  // namespace
}  // namespace piper

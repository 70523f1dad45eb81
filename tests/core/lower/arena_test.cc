// Packing blocks that live for known times into one arena.
#include "core/lower/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <numeric>
#include <random>
#include <utility>

#include "core/lower/arena_packings.h"
#include "core/lower/make_plan.h"
#include "core/plan/plan.h"

namespace piper {
namespace {

using Blocks = std::vector<ArenaBlock>;

std::string clash(const Blocks& blocks) {
  for (std::size_t a = 0; a < blocks.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      const ArenaBlock &one = blocks[a], &other = blocks[b];
      if (one.begin < other.end && other.begin < one.end &&
          one.offset < other.offset + other.bytes && other.offset < one.offset + one.bytes) {
        return std::to_string(b) + " and " + std::to_string(a);
      }
    }
  }
  return "";
}

Blocks random_blocks(std::uint32_t seed, std::size_t count, const std::vector<std::int64_t>& sizes,
                     std::uint32_t longest) {
  std::minstd_rand random(seed);
  Blocks blocks;
  std::uint64_t now = 0;
  for (std::size_t i = 0; i < count; ++i) {
    now += random() % 3;
    blocks.push_back({sizes[random() % sizes.size()], now, now + 1 + random() % longest});
  }
  return blocks;
}

// `sizes` in turn, so that as many as `together` live at once.
Blocks in_turn(const std::vector<std::int64_t>& sizes, std::size_t count, std::uint64_t together) {
  Blocks blocks;
  for (std::uint64_t i = 0; i < count; ++i) {
    blocks.push_back({sizes[i % sizes.size()], i, i + together});
  }
  return blocks;
}

// Of all orders; some order of first fits is an optimal packing.
std::int64_t optimum(const Blocks& blocks) {
  std::vector<std::uint32_t> order(blocks.size());
  std::iota(order.begin(), order.end(), 0U);
  auto least = std::numeric_limits<std::int64_t>::max();
  do {
    least = std::min(least, fit_first(blocks, order).size);
  } while (std::next_permutation(order.begin(), order.end()));
  return least;
}

TEST(Arena, KeepsWhatLivesTogetherApartAlignedAndInside) {
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    Blocks blocks = random_blocks(seed, 80, {64, 100, 640, 700, 4096, 0}, 20);

    const std::int64_t size = pack_arena(blocks);

    ASSERT_EQ(clash(blocks), "") << "seed " << seed;
    for (const ArenaBlock& block : blocks) {
      ASSERT_EQ(block.offset % kArenaAlignment, 0);
      ASSERT_LE(block.offset + block.bytes, size);
    }
  }
}

TEST(Arena, TakesWhatLivesAtMostWhereSizesAreEqual) {
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    Blocks blocks = random_blocks(seed, 300, {128}, 30);

    EXPECT_EQ(pack_arena(blocks), most_live(blocks).bytes) << "seed " << seed;
  }
}

TEST(Arena, GivesBlocksOfOneSizeThePlaceThatIsFreeForTheLongest) {
  Blocks blocks{{64, 0, 2}, {64, 0, 3}, {64, 4, 5}, {64, 6, 7}};

  EXPECT_EQ(pack_arena(blocks), 128);

  EXPECT_EQ(blocks[2].offset, blocks[0].offset);
  EXPECT_EQ(blocks[3].offset, blocks[1].offset);
}

TEST(Arena, LetsAlmostEqualSizesShare) {
  Blocks blocks = in_turn({25136 * 64, 25144 * 64}, 60, 3);

  const std::int64_t most = most_live(blocks).bytes;

  EXPECT_LE(static_cast<double>(pack_arena(blocks)), 1.01 * static_cast<double>(most));
}

// Two live at once: each goes to the other end of the arena than the one before.
TEST(Arena, WastesNothingWhereBlocksOfManySizesComeTwoAtATime) {
  Blocks blocks = in_turn({2048, 3072, 8448, 3072, 8448}, 50, 2);

  EXPECT_EQ(pack_arena(blocks), most_live(blocks).bytes);
}

TEST(Arena, IsHardlyEverLargerThanTheSmallestThereIs) {
  std::uint32_t smallest = 0;
  double worst = 1;
  for (std::uint32_t seed = 1; seed <= 100; ++seed) {
    Blocks blocks = random_blocks(seed, 7, {64, 128, 192, 320}, 8);
    const std::int64_t least = optimum(blocks), own = pack_arena(blocks);
    ASSERT_GE(own, least) << "seed " << seed;
    smallest += own == least ? 1 : 0;
    worst = std::max(worst, static_cast<double>(own) / static_cast<double>(least));
  }
  std::printf("  the smallest in %u of 100, worst ratio %.3f\n", smallest, worst);
  EXPECT_GE(smallest, 95U);
}

TEST(Arena, OfTrainingIsAsLargeAsThatOfEvaluationOnTheSameRanks) {
  const auto plan_of = [](std::vector<std::pair<std::uint32_t, std::int64_t>> arenas) {
    Plan plan;
    plan.world = 2;
    for (const auto& [rank, bytes] : arenas) {
      Program& program = plan.programs.emplace_back();
      program.ranks = {rank};
      program.arena_bytes = bytes;
    }
    return plan;
  };
  Plan train = plan_of({{0, 64}, {1, 640}});

  share_arenas(train, plan_of({{1, 128}, {0, 192}}));

  EXPECT_EQ(train.programs[0].arena_bytes, 192);
  EXPECT_EQ(train.programs[1].arena_bytes, 640);
}

TEST(Arena, IsEmptyWithoutBlocks) {
  Blocks blocks;

  EXPECT_EQ(pack_arena(blocks), 0);
}

}  // namespace
}  // namespace piper

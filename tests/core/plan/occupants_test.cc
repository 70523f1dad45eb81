#include "core/plan/occupants.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace piper {
namespace {

std::vector<std::uint32_t> take(Occupants& occupants, std::int64_t begin, std::int64_t end,
                                std::uint32_t who) {
  std::vector<std::uint32_t> before;
  occupants.take(begin, end, BufferId{who}, [&](BufferId id) { before.push_back(index(id)); });
  return before;
}

using Before = std::vector<std::uint32_t>;

TEST(Occupants, AreThoseWhoHadAByteOfTheRangeLast) {
  Occupants occupants;

  EXPECT_EQ(take(occupants, 0, 64, 1), Before{});
  EXPECT_EQ(take(occupants, 64, 128, 2), Before{});
  EXPECT_EQ(take(occupants, 32, 96, 3), (Before{1, 2}));
  EXPECT_EQ(take(occupants, 0, 128, 4), (Before{1, 3, 2}));
  EXPECT_EQ(take(occupants, 0, 128, 5), Before{4});
}

TEST(Occupants, OfAnEmptyRangeAreNobody) {
  Occupants occupants;
  take(occupants, 0, 64, 1);

  EXPECT_EQ(take(occupants, 32, 32, 2), Before{});
  EXPECT_EQ(take(occupants, 0, 64, 3), Before{1});
}

TEST(Occupants, AreWhatAnArrayOfBytesSays) {
  constexpr std::int64_t kBytes = 40;
  std::minstd_rand random(3);
  Occupants occupants;
  std::vector<std::uint32_t> last(kBytes, 0);
  for (std::uint32_t who = 1; who < 2000; ++who) {
    const std::int64_t begin = random() % kBytes;
    const std::int64_t end = begin + 1 + random() % static_cast<std::uint32_t>(kBytes - begin);
    std::set<std::uint32_t> expected;
    for (std::int64_t byte = begin; byte < end; ++byte) {
      if (std::uint32_t& had = last[static_cast<std::size_t>(byte)]; had != 0) {
        expected.insert(had);
      }
      last[static_cast<std::size_t>(byte)] = who;
    }

    const Before before = take(occupants, begin, end, who);

    ASSERT_EQ(std::set<std::uint32_t>(before.begin(), before.end()), expected) << "take " << who;
  }
}

}  // namespace
}  // namespace piper

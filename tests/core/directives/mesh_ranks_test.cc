#include "core/directives/mesh_ranks.h"

#include <gtest/gtest.h>

namespace piper {
namespace {

using Numbers = std::vector<std::uint32_t>;

MeshRanks mesh(std::vector<std::pair<std::string, std::uint32_t>> axes) {
  MeshConfig config;
  config.axes = std::move(axes);
  return MeshRanks(config);
}

std::vector<Numbers> lists(const Expected<std::vector<Ranks>>& groups) {
  std::vector<Numbers> result;
  for (const Ranks& group : *groups) {
    result.push_back(group.ranks);
  }
  return result;
}

TEST(MeshRanks, CountsTheLastAxisInnermost) {
  const MeshRanks ranks = mesh({{"pp", 2}, {"dp", 3}});

  EXPECT_EQ(ranks.world(), 6U);
  EXPECT_EQ(ranks.at({{"pp", 1}})->ranks, (Numbers{3, 4, 5}));
  EXPECT_EQ(ranks.at({{"dp", 1}})->ranks, (Numbers{1, 4}));
  EXPECT_EQ(ranks.at({{"pp", 1}, {"dp", 2}})->ranks, (Numbers{5}));
  EXPECT_EQ(ranks.at({})->ranks.size(), 6U);
}

TEST(MeshRanks, FollowsTheOrderOfTheAxes) {
  const MeshRanks ranks = mesh({{"dp", 3}, {"pp", 2}});

  EXPECT_EQ(ranks.at({{"pp", 1}})->ranks, (Numbers{1, 3, 5}));
}

TEST(MeshRanks, GroupsAlongAxesByTheirLowestRank) {
  const MeshRanks ranks = mesh({{"pp", 2}, {"dp", 2}});

  EXPECT_EQ(lists(ranks.along({"dp"})), (std::vector<Numbers>{{0, 1}, {2, 3}}));
  EXPECT_EQ(lists(ranks.along({"pp"})), (std::vector<Numbers>{{0, 2}, {1, 3}}));
  EXPECT_EQ(lists(ranks.along({"pp", "dp"})), (std::vector<Numbers>{{0, 1, 2, 3}}));
  EXPECT_EQ(lists(ranks.along({})), (std::vector<Numbers>{{0}, {1}, {2}, {3}}));
}

TEST(MeshRanks, LetsExpertsDivideTheDataParallelAxis) {
  const MeshRanks ranks = mesh({{"pp", 2}, {"dp", 4}, {"ep", 2}});

  EXPECT_EQ(ranks.world(), 8U);
  EXPECT_EQ(lists(ranks.along({"ep"})), (std::vector<Numbers>{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(lists(ranks.along({"edp"})), (std::vector<Numbers>{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  EXPECT_EQ(lists(ranks.along({"dp"})), (std::vector<Numbers>{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(ranks.at({{"dp", 3}})->ranks, (Numbers{3, 7}));
}

TEST(MeshRanks, NamesTheAxesWhereOneIsUnknown) {
  const auto failure = mesh({{"pp", 2}, {"dp", 1}}).at({{"tp", 0}});

  EXPECT_EQ(to_string(failure.error()),
            "error: the mesh has no axis 'tp' (did you mean 'dp'?) [mesh.unknown_axis]");
}

TEST(MeshRanks, RefusesACoordinateOutsideItsAxis) {
  const auto failure = mesh({{"pp", 2}, {"dp", 1}}).at({{"pp", 2}});

  EXPECT_EQ(to_string(failure.error()),
            "error: expected a coordinate below 2 on mesh axis 'pp', got 2 [mesh.coordinate]");
}

}  // namespace
}  // namespace piper

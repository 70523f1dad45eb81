// Pictures of what depends on what, after each phase.
#include "core/show/diagram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/support/golden.h"
#include "tests/support/sharded_toy.h"
#include "tests/support/toy_model.h"

namespace piper {
namespace {

using test::expect_golden;

test::ShardedJob small_job() {
  test::ShardedShape shape;
  shape.microbatches = 1;
  shape.layers = 2;
  shape.zero = 0;
  shape.bucket_bytes = 0;
  return test::sharded_job(shape);
}

// Of the plan for training.
Diagram drawn(const test::ShardedJob& job, std::string_view phase, std::int64_t rank = -1) {
  Diagram out;
  const Expected<Plans> plans = plan(job.config, job.model, {job.proposal}, [&](const Phase& at) {
    if (at.name == phase && out.nodes.empty()) {
      Expected<Diagram> picture = diagram(at, rank);
      PIPER_CHECK(picture.has_value(), "a picture that is too large");
      out = *std::move(picture);
    }
  });
  PIPER_CHECK(plans.has_value(), "a job of the tests that has no plan");
  return out;
}

bool connects(const Diagram& picture, const std::string& from, const std::string& to) {
  return std::any_of(picture.edges.begin(), picture.edges.end(), [&](const DiagramEdge& edge) {
    return picture.nodes[edge.from].label == from && picture.nodes[edge.to].label == to;
  });
}

TEST(Diagram, OfTheModelHasItsRegionsAtTheirPlaces) {
  expect_golden("show/directives_dot", dot(drawn(small_job(), "directives")));
}

TEST(Diagram, OfTheDagHasDashedOrderAndLabelledData) {
  expect_golden("show/communicate_dot", dot(drawn(small_job(), "communicate")));
}

TEST(Diagram, AfterExpandHasWhatStillIsToCross) {
  const Diagram picture = drawn(small_job(), "expand");

  EXPECT_TRUE(connects(picture, "0F0", "1F0"));
  EXPECT_TRUE(connects(picture, "1B0", "0B0"));
}

TEST(Diagram, OfThePlanHasMessagesBetweenPlaces) {
  const Diagram picture = drawn(small_job(), "schedule");

  EXPECT_TRUE(connects(picture, "send %3 m0", "recv %3 m0"));
  EXPECT_EQ(picture.clusters.size(), 2U);
}

TEST(Diagram, OfARankHasNothingOfOthers) {
  for (const char* phase : {"directives", "expand", "communicate", "schedule"}) {
    const Diagram all = drawn(small_job(), phase), one = drawn(small_job(), phase, 3);

    EXPECT_EQ(one.clusters.size(), 1U) << phase;
    EXPECT_LT(one.nodes.size(), all.nodes.size()) << phase;
    EXPECT_GT(one.nodes.size(), 0U) << phase;
  }
}

TEST(Diagram, PutsEveryNodeAfterWhatLeadsToIt) {
  const Diagram picture = drawn(small_job(), "communicate");

  for (const DiagramEdge& edge : picture.edges) {
    EXPECT_LT(picture.nodes[edge.from].level, picture.nodes[edge.to].level);
  }
}

TEST(Diagram, RefusesWhatNobodyCouldRead) {
  test::ShardedShape shape;
  shape.microbatches = 300;
  const test::ShardedJob job = test::sharded_job(shape);
  std::string code;
  const Expected<Plans> plans = plan(job.config, job.model, {job.proposal}, [&](const Phase& at) {
    if (at.name == "communicate" && code.empty()) {
      const Expected<Diagram> picture = diagram(at);
      code = picture ? "drawn" : picture.error().front().code;
    }
  });

  EXPECT_EQ(code, "show.too_large");
}

}  // namespace
}  // namespace piper
